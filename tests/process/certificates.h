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
  int days = 2;                         // -1: expired yesterday
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
                                    std::to_string(wish.days),
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
