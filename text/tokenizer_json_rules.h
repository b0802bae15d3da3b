#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "formats/json_document.h"
#include "text/vocabulary.h"

namespace pagoda::text {

// The parts of a tokenizer.json that are rules and not words. Each is compared with the forms known
// here, and anything else is refused with what was found. Errors: InvalidArgument, without the
// file.

// Of the byte-level family; for the other see ReadSpaceMarks.
// The name of the splitting rule (see Splitter).
absl::StatusOr<std::string> ReadPreTokenizer(const formats::JsonValue& pre_tokenizer);
absl::StatusOr<Vocabulary::Normalizer> ReadNormalizer(const formats::JsonValue& normalizer);
// The token put before a text; nothing when none is.
absl::StatusOr<std::optional<base::TokenId>> ReadPostProcessor(
    const formats::JsonValue& post_processor);
absl::Status CheckDecoder(const formats::JsonValue& decoder);

// --- What readers of such files share ---

absl::Status RefuseEntry(std::string_view entry, std::string_view what);
// Every member's name is one of `known`.
absl::Status CheckKeys(const formats::JsonValue& object, std::string_view entry,
                       std::span<const std::string_view> known);
// The steps of a Sequence, which it has in `list_key`, or the one step that stands alone.
absl::StatusOr<std::vector<formats::JsonValue>> StepsOf(const formats::JsonValue& value,
                                                        std::string_view entry,
                                                        std::string_view list_key);
// A flag that may be absent or null.
absl::StatusOr<bool> ReadFlag(const formats::JsonValue& object, std::string_view entry,
                              std::string_view key, bool absent);
absl::StatusOr<std::string_view> ReadText(const formats::JsonValue& object, std::string_view entry,
                                          std::string_view key);
absl::StatusOr<base::TokenId> ReadTokenId(const formats::JsonValue& value, std::string_view entry);

}  // namespace pagoda::text
