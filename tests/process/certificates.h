#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/process/program.h"
#include "tests/process/server_fixture.h"

// Real certificates for tests of TLS, made by openssl.
namespace pagoda::process {

struct Certificate {
  std::string cert, key;  // files
};

struct CertificateWish {
  std::string name;
  const Certificate* issuer = nullptr;  // null: its own, a CA
  std::string more_names = {};          // as ",DNS:a.example"
  bool expired = false;                 // yesterday; of an issuer's only
};

inline void MakeCertificate(const Certificate& made, const CertificateWish& wish) {
  std::vector<std::string> words = {"/usr/bin/openssl",
                                    "req",
                                    "-x509",
                                    "-newkey",
                                    "ec",
                                    "-pkeyopt",
                                    "ec_paramgen_curve:P-256",
                                    "-nodes",
                                    "-days",
                                    "2",
                                    "-subj",
                                    "/CN=" + wish.name,
                                    "-keyout",
                                    made.key,
                                    "-out",
                                    made.cert};
  if (wish.issuer != nullptr) {
    words.insert(words.end(), {"-CA", wish.issuer->cert, "-CAkey", wish.issuer->key, "-addext",
                               "subjectAltName=IP:127.0.0.1" + wish.more_names, "-addext",
                               "basicConstraints=critical,CA:FALSE"});
  }
  const Ran ran = RunProgram(words);
  ASSERT_EQ(ran.code, 0) << ran.output;
  if (!wish.expired) return;
  // `req` signs nothing whose time is over; `x509` does, from a request for the same key.
  const std::string request = made.cert + ".csr";
  const Ran asked =
      RunProgram({"/usr/bin/openssl", "req", "-new", "-key", made.key, "-subj", "/CN=" + wish.name,
                  "-addext", "subjectAltName=IP:127.0.0.1" + wish.more_names, "-out", request});
  ASSERT_EQ(asked.code, 0) << asked.output;
  const Ran again = RunProgram({"/usr/bin/openssl", "x509", "-req", "-in", request, "-CA",
                                wish.issuer->cert, "-CAkey", wish.issuer->key, "-set_serial", "7",
                                "-copy_extensions", "copy", "-days", "-1", "-out", made.cert});
  ASSERT_EQ(again.code, 0) << again.output;
}

inline Certificate FreshCertificate(const std::string& file, const CertificateWish& wish) {
  Certificate made{FreshFile(file + ".pem"), FreshFile(file + ".key")};
  MakeCertificate(made, wish);
  return made;
}

inline std::string ContentOf(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(content).str();
}

}  // namespace pagoda::process
