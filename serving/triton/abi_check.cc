// SPDX-License-Identifier: Apache-2.0
//
// Whether triton_abi.h says what the server's own headers say: compiled, not run.
//   make check-triton-abi TRITON_HEADERS=FOLDER     FOLDER holds triton/core/*.h
// Both declare the same names: ours are read in a namespace, the server's as they are.
#include <cstdint>
#include <cstddef>
#include <type_traits>

#include "triton/core/tritonbackend.h"
#include "triton/core/tritonserver.h"

namespace ours {
extern "C++" {
#include "serving/triton/triton_abi.h"
}
}  // namespace ours

// Functions agree if they take and give the same kinds of values: pointers to the server's
// objects, which are other types here, count as pointers.
template <class T, class = void> struct kind { using type = T; };
template <class T> struct kind<T *> { using type = void *; };
template <class T> struct kind<T, std::enable_if_t<std::is_enum<T>::value>> {
  using type = std::integral_constant<size_t, sizeof(T)>;
};
template <class... T> struct list {};
template <class F> struct shape;
template <class R, class... A> struct shape<R (*)(A...)> {
  using type = list<typename kind<R>::type, typename kind<A>::type...>;
};
#define SAME(name)                                                                       \
  static_assert(std::is_same<shape<decltype(&::name)>::type,                             \
                             shape<decltype(&ours::name)>::type>::value, #name)
#define EQUAL(name)                                                                      \
  static_assert(static_cast<long>(::name) == static_cast<long>(ours::name), #name)

#include "abi_names.h"

static_assert(TRITONBACKEND_API_VERSION_MAJOR == ours::TRITON_API_MAJOR, "API version");
static_assert(TRITONBACKEND_API_VERSION_MINOR >= ours::TRITON_API_MINOR, "API version");
