// libFuzzer entry: whatever an index says of two shards that are there, it is refused or every
// tensor it gives is one of theirs.

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/check.h"
#include "formats/safetensors_folder.h"

namespace {

void Write(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// One tensor of four bytes, called `name`.
std::string Shard(std::string_view name) {
  std::string header =
      R"({")" + std::string(name) + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  return file + header + std::string(4, '\1');
}

// A folder of this process with the two shards, removed when it ends.
class Folder {
 public:
  Folder() {
    std::string path = (std::filesystem::temp_directory_path() / "shards-XXXXXX").string();
    PAGODA_CHECK(mkdtemp(path.data()) != nullptr);
    path_ = path;
    Write(path_ / "a.safetensors", Shard("x"));
    Write(path_ / "b.safetensors", Shard("y"));
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const static Folder folder;
  Write(folder.path() / "model.safetensors.index.json",
        {reinterpret_cast<const char*>(data), size});
  const auto opened = pagoda::formats::SafetensorsFolder::Open(folder.path().string());
  if (!opened.ok()) return 0;
  PAGODA_CHECK((*opened)->tensors().size() == 2);
  for (const auto* tensor : (*opened)->tensors()) {
    PAGODA_CHECK(tensor->name == "x" || tensor->name == "y");
    PAGODA_CHECK(tensor->data.size() == 4 && tensor->data[0] == std::byte{1});
  }
  return 0;
}
