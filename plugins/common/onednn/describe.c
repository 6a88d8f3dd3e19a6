/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors of tensors, arguments of primitives, and oneDNN's statuses.
 */
#include "plugins/common/onednn/primitive.h"

#include <sys/mman.h>

/* Last dim fastest, by rank. */
static const dnnl_format_tag_t dense[] = {
    dnnl_format_tag_undef, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde, dnnl_abcdef};

/* Tags by rank, 2 to 5. */
static const struct layout {
    uint64_t format;
    dnnl_format_tag_t tag[4];
} layouts[] = {
    {STRATA_F32_NCHW, {dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde}},
    {STRATA_F32_NHWC, {dnnl_ab, dnnl_acb, dnnl_acdb, dnnl_acdeb}},
    {STRATA_I8_NCHW, {dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde}},
    {STRATA_U8_NCHW, {dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde}},
    {STRATA_I8_NHWC, {dnnl_ab, dnnl_acb, dnnl_acdb, dnnl_acdeb}},
    {STRATA_U8_NHWC, {dnnl_ab, dnnl_acb, dnnl_acdb, dnnl_acdeb}},
    {STRATA_F32_NC8HW8, {0, dnnl_aBc8b, dnnl_aBcd8b, dnnl_aBcde8b}},
    {STRATA_F32_NC16HW16, {0, dnnl_aBc16b, dnnl_aBcd16b, dnnl_aBcde16b}},
};

int onednn_check(const strata_node *n, dnnl_status_t status, const char *what)
{
    if (status == dnnl_success)
        return STRATA_OK;
    return STRATA_FAIL(n,
                       status == dnnl_out_of_memory   ? STRATA_ENOMEM
                       : status == dnnl_runtime_error ? STRATA_EINTERNAL
                                                      : STRATA_EUNSUPPORTED,
                       "%s: oneDNN says %s", what, dnnl_status2str(status));
}

bool onednn_has(dnnl_cpu_isa_t isa)
{
    return ((unsigned)dnnl_get_effective_cpu_isa() & (unsigned)isa) == (unsigned)isa;
}

/* oneDNN (2.6.3) uses what some allocations give unchecked, and throws through its C
 * interface: where memory ends inside it, the process ends. So it is asked before. */
bool onednn_has_room(void)
{
    const size_t bytes = (size_t)ONEDNN_ROOM_MIB << 20;
    void *room =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return room != MAP_FAILED && munmap(room, bytes) == 0;
}

int onednn_room(const strata_node *n)
{
    return onednn_has_room()
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_ENOMEM, ONEDNN_NO_ROOM, ONEDNN_ROOM_MIB);
}

/* oneDNN's kernels keep offsets in 32 bits. */
static int describe_tensor(const strata_node *n, const int64_t *dims, int rank,
                           dnnl_data_type_t type, dnnl_format_tag_t tag,
                           dnnl_memory_desc_t *md)
{
    dnnl_dims_t all = {0};
    int64_t elements = 1;
    for (int d = 0; d < rank; d++) {
        all[d] = dims[d];
        if (dims[d] < 1 || __builtin_mul_overflow(elements, dims[d], &elements) ||
            elements > INT32_MAX)
            return STRATA_FAIL(
                n, STRATA_EUNSUPPORTED,
                "a tensor is empty or has over %d elements, which oneDNN's "
                "kernels do not take",
                INT32_MAX);
    }
    return onednn_check(n, dnnl_memory_desc_init_by_tag(md, rank, all, type, tag),
                        "tensor descriptor");
}

int onednn_tensor(const strata_node *n, const strata_tensor *t, dnnl_memory_desc_t *md)
{
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (t->format == layouts[i].format && t->rank >= 2 && t->rank <= 5 &&
            layouts[i].tag[t->rank - 2] != dnnl_format_tag_undef)
            return describe_tensor(n, t->dims, t->rank,
                                   t->dtype == STRATA_INT8    ? dnnl_s8
                                   : t->dtype == STRATA_UINT8 ? dnnl_u8
                                                              : dnnl_f32,
                                   layouts[i].tag[t->rank - 2], md);
    return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                       "oneDNN has no name for this format at rank %d", (int)t->rank);
}

static int describe_dense(const strata_node *n, const int64_t *dims, int rank,
                          dnnl_data_type_t type, dnnl_memory_desc_t *md)
{
    if (rank < 1 || rank >= (int)(sizeof dense / sizeof dense[0]))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "oneDNN takes no rank %d here", rank);
    return describe_tensor(n, dims, rank, type, dense[rank], md);
}

int onednn_dense(const strata_node *n, const int64_t *dims, int rank,
                 dnnl_memory_desc_t *md)
{
    return describe_dense(n, dims, rank, dnnl_f32, md);
}

int onednn_dense_bytes(const strata_node *n, const int64_t *dims, int rank,
                       dnnl_memory_desc_t *md)
{
    return describe_dense(n, dims, rank, dnnl_s8, md);
}

int onednn_any_bytes(const strata_node *n, const int64_t *dims, int rank,
                     dnnl_memory_desc_t *md)
{
    return describe_tensor(n, dims, rank, dnnl_s8, dnnl_format_tag_any, md);
}

int onednn_any(const strata_node *n, const int64_t *dims, int rank,
               dnnl_memory_desc_t *md)
{
    return describe_tensor(n, dims, rank, dnnl_f32, dnnl_format_tag_any, md);
}

void onednn_bind(struct onednn_arguments *list, int index, enum onednn_source source)
{
    list->at[list->n++] = (struct onednn_argument){index, source};
}
