/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLASLt's functions, found when first needed: linking it would cost every look-up of a
 * layer, on the host too, a tenth of a second of mapping half a gigabyte.
 */
#ifndef PLUGINS_COMMON_CUBLASLT_LIBRARY_H
#define PLUGINS_COMMON_CUBLASLT_LIBRARY_H

#include <cublasLt.h>

#include <strata/plugin.h>

#define CUBLASLT_FUNCTIONS(_)                                                            \
    _(cublasLtCreate)                                                                    \
    _(cublasLtGetStatusString)                                                           \
    _(cublasLtMatmul)                                                                    \
    _(cublasLtMatmulAlgoGetHeuristic)                                                    \
    _(cublasLtMatmulDescInit_internal)                                                   \
    _(cublasLtMatmulDescSetAttribute)                                                    \
    _(cublasLtMatmulPreferenceInit_internal)                                             \
    _(cublasLtMatmulPreferenceSetAttribute)                                              \
    _(cublasLtMatrixLayoutInit_internal)                                                 \
    _(cublasLtMatrixLayoutSetAttribute)

struct cublaslt_library {
#define CUBLASLT_MEMBER(name) __typeof__(&name) name;
    CUBLASLT_FUNCTIONS(CUBLASLT_MEMBER)
#undef CUBLASLT_MEMBER
};

/* The library, and a handle for the current device; both live as long as the process and
 * may be shared by threads. EUNSUPPORTED with the reason where there is none. */
int cublaslt_library_get(const strata_node *n, const struct cublaslt_library **library,
                         cublasLtHandle_t *handle);

#endif /* PLUGINS_COMMON_CUBLASLT_LIBRARY_H */
