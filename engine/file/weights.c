/* SPDX-License-Identifier: Apache-2.0
 *
 * A network's weights as one safetensors text: values of random ones and zeros too, each
 * in the type its layer takes. Every tensor begins at a multiple of 256 bytes; since the
 * format has no holes, tensors named "align.N" fill them.
 */
#include "engine/file/stored.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/checked.h"
#include "io/stream.h"

enum { ALIGNMENT = ENGINE_FILE_ALIGNMENT, LENGTH_SIZE = 8 };

struct blob {
    FILE *f; /* of the header */
    char *header;
    size_t header_size;
    int64_t data; /* bytes so far */
    int fillers;
};

/* Weights of a network, in order, until next_weight has none. */
struct cursor {
    size_t layer, weight;
};

static bool next_weight(struct network_weight *out, const strata_network *net,
                        struct cursor *at)
{
    for (; at->layer < net->n_layers; at->layer++, at->weight = 0) {
        const struct network_layer *l = &net->layers[at->layer];
        while (at->weight < l->type->n_weights)
            if (network_has_weight(l, at->weight++)) {
                *out = network_weight_stored(&l->weights[at->weight - 1]);
                return true;
            }
    }
    return false;
}

static int64_t bytes_of(const struct network_weight *w)
{
    int64_t count = network_elements(w->dims, w->rank);
    return count < 0 ? -1 : count * (int64_t)strata_dtype_size(w->dtype);
}

static void put_entry(struct blob *b, const char *name, const char *dtype,
                      const int64_t *dims, int rank, int64_t bytes)
{
    fprintf(b->f, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", b->data ? "," : "", name,
            dtype);
    for (int d = 0; d < rank; d++)
        fprintf(b->f, d ? ",%" PRId64 : "%" PRId64, dims[d]);
    fprintf(b->f, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", b->data,
            b->data + bytes);
    b->data += bytes;
}

static int add_weight(struct blob *b, const struct network_weight *w, strata_error *err)
{
    char name[32];
    int64_t bytes = bytes_of(w), next;
    if (bytes < 0 || !checked_add(b->data, bytes, &next) ||
        !checked_round_up(next, ALIGNMENT, &next) || next > (int64_t)ENGINE_FILE_MAX)
        return error_set(err, STRATA_EOVERFLOW, "%s: too large for an engine file",
                         w->name);
    put_entry(b, w->name, weight_dtype_name(weight_dtype_of(w->dtype)), w->dims, w->rank,
              bytes);
    if (next == b->data)
        return STRATA_OK;
    bytes = next - b->data;
    snprintf(name, sizeof name, "align.%d", b->fillers++);
    put_entry(b, name, "U8", &bytes, 1, bytes);
    return STRATA_OK;
}

/* Blanks after the header put the data at a multiple too. */
static int finish_header(struct blob *b, size_t *padded, strata_error *err)
{
    int64_t whole;
    fputc('}', b->f);
    FILE *f = b->f;
    b->f = NULL;
    if (!text_finish(f, &b->header) ||
        !checked_round_up(LENGTH_SIZE + (int64_t)b->header_size, ALIGNMENT, &whole))
        return error_no_memory(err, b->header_size, "the weights' header");
    *padded = (size_t)whole - LENGTH_SIZE;
    return STRATA_OK;
}

static int fill(char *data, const strata_network *net, strata_error *err)
{
    struct cursor at = {0};
    struct network_weight w;
    int64_t begin = 0;
    while (next_weight(&w, net, &at)) {
        int status = network_weight_load(&w, data + begin, err);
        if (status != STRATA_OK)
            return status;
        checked_round_up(begin + bytes_of(&w), ALIGNMENT, &begin);
    }
    return STRATA_OK;
}

int engine_write_weights(void **out, size_t *size, const strata_network *net,
                         strata_error *err)
{
    struct blob b = {0};
    struct cursor at = {0};
    struct network_weight w;
    size_t padded = 0;
    char *bytes = NULL;
    int status = STRATA_OK;
    *out = NULL;
    if (!(b.f = text_stream(&b.header, &b.header_size)))
        return error_no_memory(err, 0, "the weights' header");
    fputc('{', b.f);
    while (status == STRATA_OK && next_weight(&w, net, &at))
        status = add_weight(&b, &w, err);
    int finished = finish_header(&b, &padded, err);
    status = status == STRATA_OK ? finished : status;
    if (status != STRATA_OK)
        goto done;
    *size = LENGTH_SIZE + padded + (size_t)b.data;
    if (!(bytes = zalloc(*size, 1, "the weights", err))) {
        status = STRATA_ENOMEM;
        goto done;
    }
    for (int i = 0; i < LENGTH_SIZE; i++)
        bytes[i] = (char)(padded >> 8 * i & 0xff);
    memset(bytes + LENGTH_SIZE, ' ', padded);
    memcpy(bytes + LENGTH_SIZE, b.header, b.header_size);
    status = fill(bytes + LENGTH_SIZE + padded, net, err);
    *out = bytes;
    bytes = NULL;
done:
    if (status != STRATA_OK) {
        free(*out);
        *out = NULL;
    }
    free(bytes);
    free(b.header);
    return status;
}
