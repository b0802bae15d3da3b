#include "text/text_stream.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "text/utf8.h"

namespace pagoda::text {

void TextStream::Append(std::string_view bytes) {
  PAGODA_CHECK(!finished_);
  pending_.append(bytes);
}

std::string TextStream::Take(std::uint64_t limit_bytes) {
  PAGODA_CHECK(!finished_);
  return Repair(limit_bytes, Tail::kHold);
}

std::string TextStream::Finish(std::uint64_t end_bytes) {
  PAGODA_CHECK(!finished_);
  PAGODA_CHECK_MSG(end_bytes >= taken_bytes_, "the text ends before what was already given out");
  std::string text = Repair(end_bytes, Tail::kReplace);
  finished_ = true;
  return text;
}

std::string TextStream::Repair(std::uint64_t limit_bytes, Tail tail) {
  if (limit_bytes <= taken_bytes_) return {};
  const std::uint64_t room = limit_bytes - taken_bytes_;
  const std::string_view visible(pending_.data(), std::min<std::uint64_t>(room, pending_.size()));
  std::string text;
  const bool drops_space = first_space_ == FirstSpace::kDropped && taken_bytes_ == 0;
  std::size_t offset = drops_space && visible.starts_with(' ') ? 1 : 0;
  while (offset < visible.size()) {
    const Utf8Unit unit = ReadUtf8(visible.substr(offset));
    if (unit.kind == Utf8Unit::Kind::kUnfinished && tail == Tail::kHold) break;
    if (unit.kind == Utf8Unit::Kind::kCharacter) {
      text.append(visible.substr(offset, unit.length));
    } else {
      text.append(kReplacementCharacter);
    }
    offset += unit.length;
  }
  pending_.erase(0, offset);
  taken_bytes_ += offset;
  return text;
}

}  // namespace pagoda::text
