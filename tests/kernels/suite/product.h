#pragma once

#include <utility>
#include <vector>

#include "tests/kernels/suite/kernel_suite.h"

namespace pagoda::kernels {

// A weight of some parts, packed for one backend, and products with it.
class Product {
 public:
  Product(std::vector<SourceWeight> parts, WeightRole role, ActivationType activation, Ops& ops)
      : parts_(std::move(parts)), weight_(parts_, role, activation, ops), ops_(ops) {}

  Matrix Run(const Matrix& x) const {
    Matrix out(x.rows, weight_.get()->plan.num_outputs);
    ops_.Matmul({.x = x.view(), .weight = weight_.get(), .out = out.view(), .row_adapters = {}},
                Stream{});
    EXPECT_TRUE(ops_.device().Await(ops_.device().Record(Stream{})).ok());
    return out;
  }
  const OwnedWeight& weight() const { return weight_; }

 private:
  std::vector<SourceWeight> parts_;
  OwnedWeight weight_;
  Ops& ops_;
};

inline std::string Case(ElementType format, ActivationType activation) {
  return std::string(Name(format)) + " with " + Name(activation);
}

}  // namespace pagoda::kernels
