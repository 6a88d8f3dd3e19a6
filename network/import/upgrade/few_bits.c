/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of com.microsoft on weights of few bits: bytes and scales as a layer's weight
 * where it can be so, else the numbers that they stand for.
 */
#include "network/import/upgrade.h"

#include "core/alloc.h"
#include "formats/format.h"
#include "io/weights/weights.h"

#define DOMAIN "com.microsoft"

/* A matrix of N x K numbers, in blocks of a row that share a scale. */
struct packed {
    int64_t rows, columns, block, blocks; /* blocks of a row */
    int64_t row_bytes;
    int bits;
    const uint8_t *bytes;
    /* Packed, or of the scales' type; both NULL: half of the range. */
    const uint8_t *zeros;
    const struct value *real_zeros;
    const struct value *groups; /* the block of each column; NULL: in order */
    const struct value *scales;
};

static int unpack(const uint8_t *bytes, int64_t i, int bits)
{
    const int64_t bit = i * bits;
    return bytes[bit / 8] >> (bit % 8) & ((1 << bits) - 1);
}

static bool is_bytes(const struct value *v, int64_t n)
{
    return v && v->constant && v->dtype == STRATA_UINT8 && v->data && value_count(v) == n;
}

/* Their zero points: bytes that pack them, or a float for each. */
static bool read_zeros(const struct value *zeros, struct packed *p)
{
    if (!zeros)
        return true;
    if (zeros->constant && dtype_is_free(zeros->dtype)) {
        p->real_zeros = zeros;
        return value_count(zeros) == p->rows * p->blocks;
    }
    p->zeros = zeros->data;
    return is_bytes(zeros, p->rows * ((p->blocks * p->bits + 7) / 8));
}

static bool read_groups(const struct value *groups, struct packed *p)
{
    p->groups = groups;
    bool good = !groups || (groups->constant && value_count(groups) == p->columns);
    for (int64_t k = 0; groups && good && k < p->columns; k++)
        good = value_integer(groups, k) >= 0 && value_integer(groups, k) < p->blocks;
    return good;
}

static bool has_known_sizes(const struct packed *p)
{
    return (p->bits == 2 || p->bits == 4 || p->bits == 8) && p->block >= 8 &&
           p->rows >= 1 && p->columns >= 1 && p->block <= INT32_MAX &&
           p->rows <= INT32_MAX && p->columns <= INT32_MAX;
}

static bool read_packed(const struct import *im, const struct node *n, struct packed *p)
{
    const struct value *weights = upgrade_input(im, n, 1);
    *p = (struct packed){.rows = node_integer(n, "N", 0),
                         .columns = node_integer(n, "K", 0),
                         .block = node_integer(n, "block_size", 0),
                         .bits = (int)node_integer(n, "bits", 4),
                         .scales = upgrade_input(im, n, 2)};
    if (!has_known_sizes(p) || !weights || node_integer(n, "weight_prepacked", 0))
        return false;
    p->blocks = (p->columns + p->block - 1) / p->block;
    p->row_bytes = p->blocks * (p->block * p->bits / 8);
    if (p->row_bytes > INT64_MAX / p->rows ||
        !is_bytes(weights, p->rows * p->row_bytes) || !p->scales ||
        !p->scales->constant || value_count(p->scales) != p->rows * p->blocks)
        return false;
    p->bytes = weights->data;
    return read_zeros(upgrade_input(im, n, 3), p) &&
           read_groups(upgrade_input(im, n, 4), p);
}

static float zero_of(const struct packed *p, int64_t r, int64_t b)
{
    const int64_t zero_bytes = (p->blocks * p->bits + 7) / 8;
    if (p->real_zeros)
        return (float)value_real(p->real_zeros, r * p->blocks + b);
    return (float)(p->zeros ? unpack(p->zeros + r * zero_bytes, b, p->bits)
                            : 1 << (p->bits - 1));
}

/* N x K floats; or, of the product's second operand, K x N. */
static void unpack_all(const struct packed *p, bool transposed, float *out)
{
    const int64_t row = transposed ? 1 : p->columns, column = transposed ? p->rows : 1;
    for (int64_t r = 0; r < p->rows; r++) {
        float scale = 0, zero = 0; /* of the block of the column before */
        for (int64_t k = 0, before = -1; k < p->columns; k++) {
            const int64_t b = p->groups ? value_integer(p->groups, k) : k / p->block;
            if (b != before) {
                scale = (float)value_real(p->scales, r * p->blocks + b);
                zero = zero_of(p, r, b);
                before = b;
            }
            const float q = (float)unpack(p->bytes + r * p->row_bytes, k, p->bits);
            out[k * column + r * row] = scale * (q - zero);
        }
    }
}

/* A matrix of floats, NULL without memory, as a constant of the dtype. */
static int constant(struct import *im, const int64_t *dims, float *wide, int dtype)
{
    const int64_t n = dims[0] * dims[1];
    void *data = wide;
    if (!wide)
        return VALUE_NONE;
    if (dtype != STRATA_FP32 &&
        (!(data = arena_get(&im->g.arena, (size_t)n, sizeof *wide)) ||
         weights_convert(data, dtype, wide, WEIGHT_F32, n, NULL) != STRATA_OK))
        return VALUE_NONE;
    return graph_add_constant(&im->g, "", dtype, 2, dims, data);
}

/* The matrix as a constant of the dtype. */
static int unpacked(struct import *im, const struct packed *p, bool transposed, int dtype)
{
    const int64_t dims[] = {transposed ? p->columns : p->rows,
                            transposed ? p->rows : p->columns};
    float *wide = arena_get(&im->g.arena, (size_t)(p->columns * p->rows), sizeof *wide);
    if (wide)
        unpack_all(p, transposed, wide);
    return constant(im, dims, wide, dtype);
}

/* Whether a layer's weight can be so: with groups of columns in order, and an x that is
 * computed; a product of constants is one, by their floats. */
static bool stays_packed(const struct packed *p, const struct value *x)
{
    return (p->bits == 4 || p->bits == 8) && !p->groups && !x->constant && x->rank >= 2 &&
           x->rank < STRATA_MAX_RANK && dtype_is_free(x->dtype);
}

/* From the middle of the range, which stands for 0 in a layer's weight. */
static float own_zero(const struct packed *p, int64_t r, int64_t b)
{
    return zero_of(p, r, b) - (float)(1 << (p->bits - 1));
}

static bool has_own_zeros(const struct packed *p)
{
    bool has = false;
    for (int64_t i = 0; !has && i < p->rows * p->blocks; i++)
        has = own_zero(p, i / p->blocks, i % p->blocks) != 0;
    return has;
}

/* Rows of what K needs: of 4 bits as they are, of 8 as int8. */
static int packed_bytes(struct import *im, const struct packed *p)
{
    const int64_t dims[] = {p->rows, (p->columns * p->bits + 7) / 8};
    const uint8_t flip = p->bits == 8 ? 0x80 : 0;
    uint8_t *to = arena_get(&im->g.arena, (size_t)(dims[0] * dims[1]), 1);
    for (int64_t r = 0; to && r < dims[0]; r++)
        for (int64_t i = 0; i < dims[1]; i++)
            to[r * dims[1] + i] = p->bytes[r * p->row_bytes + i] ^ flip;
    return to ? graph_add_constant(&im->g, "", flip ? STRATA_INT8 : STRATA_UINT8, 2, dims,
                                   to)
              : VALUE_NONE;
}

static int packed_scales(struct import *im, const struct packed *p)
{
    const int64_t dims[] = {p->rows, p->blocks};
    float *to = arena_get(&im->g.arena, (size_t)(p->rows * p->blocks), sizeof *to);
    for (int64_t i = 0; to && i < p->rows * p->blocks; i++)
        to[i] = (float)value_real(p->scales, i);
    return to ? graph_add_constant(&im->g, "", STRATA_FP32, 2, dims, to) : VALUE_NONE;
}

/* Of each block of x's columns its mean: once for products of one x. A sum would be out
 * of FP16's range before what it is multiplied by makes it small. */
static int block_means(struct import *im, const struct node *n, const struct packed *p,
                       int rank)
{
    struct graph *g = &im->g;
    const int64_t rest = p->blocks * p->block - p->columns, last = -1;
    int64_t pads[2 * STRATA_MAX_RANK] = {0}, dims[STRATA_MAX_RANK] = {0};
    int x = n->in[0];
    if (im->means_of == x && im->means_block == p->block)
        return im->means;
    im->means_of = x;
    im->means_block = p->block;
    pads[2 * rank - 1] = rest;
    dims[rank - 1] = p->blocks;
    dims[rank] = p->block;
    if (rest > 0)
        x = upgrade_two(im, n, "Pad", x, graph_add_integers(g, 1, pads, 2 * rank));
    x = upgrade_two(im, n, "Reshape", x, graph_add_integers(g, 1, dims, rank + 1));
    struct node *mean = upgrade_add(
        im, n, "ReduceMean", (const int[]){x, graph_add_integers(g, 1, &last, 1)}, 2);
    node_set_integer(g, mean, "keepdims", 0);
    return im->means = upgrade_value(mean);
}

/* x (w - z) s is x w s, less the sum of x over a block by its z s: that product. */
static int of_zeros(struct import *im, const struct node *n, const struct packed *p,
                    const struct value *x)
{
    const int64_t dims[] = {p->blocks, p->rows};
    float *wide = arena_get(&im->g.arena, (size_t)(p->rows * p->blocks), sizeof *wide);
    for (int64_t i = 0; wide && i < p->rows * p->blocks; i++) {
        const int64_t b = i / p->rows, r = i % p->rows;
        const float scale = (float)value_real(p->scales, r * p->blocks + b);
        wide[i] = -own_zero(p, r, b) * scale * (float)p->block;
    }
    const int means = block_means(im, n, p, x->rank);
    return upgrade_two(im, n, "MatMul", means, constant(im, dims, wide, x->dtype));
}

static void keep_packed(struct import *im, struct node *n, const struct packed *p)
{
    const int weight = packed_bytes(im, p), scales = packed_scales(im, p);
    upgrade_standard(n, "MatrixMultiply");
    n->domain = "strata";
    n->n_in = 2;
    n->in[1] = weight;
    node_set_input(&im->g, n, 3, scales);
    node_set_integer(&im->g, n, "transpose_b", 1);
    node_set_integer(&im->g, n, "weight_group", p->block);
    if (p->bits == 4)
        node_set_integer(&im->g, n, "weight_bits", 4);
}

static void few_bits(struct import *im, struct node *n)
{
    struct packed p;
    const struct value *x = upgrade_input(im, n, 0);
    const int bias = n->n_in > 5 ? n->in[5] : VALUE_NONE;
    if (!x || !read_packed(im, n, &p)) {
        import_refuse_node(
            im, n, NULL,
            "weights, scales and zero points must be constant, of 2, 4 or "
            "8 bits packed as 'K', 'N' and 'block_size' say, for no device apart");
        return;
    }
    const bool stays = stays_packed(&p, x);
    if (stays && has_own_zeros(&p))
        node_set_input(&im->g, upgrade_after(im, n, 0, "Add"), 1, of_zeros(im, n, &p, x));
    if (bias >= 0)
        node_set_input(&im->g, upgrade_after(im, n, 0, "Add"), 1, bias);
    if (stays) {
        keep_packed(im, n, &p);
        return;
    }
    n->in[1] = unpacked(im, &p, true, x->dtype);
    n->n_in = 2;
    upgrade_standard(n, "MatMul");
}

/* Rows of bytes, of which indices choose some: data, indices, scales, zero points. */
static bool read_rows(const struct import *im, const struct node *n, struct packed *p)
{
    const struct value *data = upgrade_input(im, n, 0);
    *p = (struct packed){.block = node_integer(n, "block_size", 128),
                         .bits = (int)node_integer(n, "bits", 4),
                         .scales = upgrade_input(im, n, 2)};
    if (!data || data->rank != 2 || data->dtype != STRATA_UINT8 || !data->constant ||
        !data->data || !p->scales || !p->scales->constant ||
        node_integer(n, "gather_axis", 0) != 0)
        return false;
    p->rows = data->dims[0];
    p->row_bytes = data->dims[1];
    p->bytes = data->data;
    if (p->bits < 1 || p->bits > 8 || p->row_bytes > INT32_MAX)
        return false;
    p->columns = p->row_bytes * 8 / p->bits;
    const int64_t axis = node_integer(n, "quantize_axis", 1);
    if (!has_known_sizes(p) || (axis != 1 && axis != -1))
        return false;
    p->blocks = (p->columns + p->block - 1) / p->block;
    return value_count(p->scales) == p->rows * p->blocks &&
           read_zeros(upgrade_input(im, n, 3), p);
}

/* Of 4 bits a number by its own type: what blocks of DequantizeLinear are. */
static int dequantized(struct import *im, const struct node *n)
{
    const int in[] = {n->in[0], n->in[2], n->n_in > 3 ? n->in[3] : VALUE_NONE};
    struct node *made = upgrade_add(im, n, "DequantizeLinear", in, in[2] < 0 ? 2 : 3);
    node_set_integer(&im->g, made, "axis", node_integer(n, "quantize_axis", 1));
    node_set_integer(&im->g, made, "block_size", node_integer(n, "block_size", 128));
    return upgrade_value(made);
}

static void gather_rows(struct import *im, struct node *n)
{
    struct packed p;
    const struct value *data = upgrade_input(im, n, 0), *scales = upgrade_input(im, n, 2);
    const int64_t axis = node_integer(n, "gather_axis", 0);
    int table = VALUE_NONE;
    if (data && (data->carried == ONNX_INT4 || data->carried == ONNX_UINT4))
        table = dequantized(im, n);
    else if (scales && read_rows(im, n, &p))
        table = unpacked(im, &p, false, scales->dtype);
    else {
        import_refuse_node(im, n, NULL,
                           "data, scales and zero points must be constant: rows of bytes "
                           "that hold numbers of 2, 4 or 8 bits in blocks, or int4 and "
                           "uint4");
        return;
    }
    n->in[0] = table;
    node_set_integer(&im->g, n, "axis", axis);
    n->n_in = 2;
    upgrade_standard(n, "Gather");
}

static const struct rewrite rows[] = {
    {"GatherBlockQuantized", DOMAIN, gather_rows},
    {"MatMulNBits", DOMAIN, few_bits},
};

const struct rewrite_table upgrade_few_bits = {rows, ARRAY_LENGTH(rows)};
