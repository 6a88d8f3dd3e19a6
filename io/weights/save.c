/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing safetensors: the header, filled with blanks so that the elements begin at a
 * multiple of 64, then tensors in falling order of the size of their elements.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/weights/weights.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/checked.h"
#include "io/stream.h"
#include "io/file.h"

#define DATA_ALIGNMENT 64 /* of the first element in the file */

struct file_plan {
    struct file_piece *pieces; /* length and header first */
    size_t n;
    uint64_t length; /* of the header, little-endian as the machine is */
    char *header;
    size_t size;
};

/* Views as pieces, largest elements first and else as they stand. */
static int order_views(struct file_plan *p, const struct weight_view *views, size_t n,
                       const struct weight_view **order, strata_error *err)
{
    size_t k = 0;
    for (size_t bytes = 8; bytes >= 1; bytes /= 2)
        for (size_t i = 0; i < n; i++)
            if (weight_dtype_size(views[i].dtype) == bytes)
                order[k++] = &views[i];
    p->n = 2;
    p->size = 0;
    for (size_t i = 0; i < k; i++) {
        p->pieces[p->n++] = (struct file_piece){order[i]->data, order[i]->bytes};
        if (!checked_size_add(p->size, order[i]->bytes, &p->size))
            return error_no_memory(err, SIZE_MAX, "weights");
    }
    return k == n ? STRATA_OK
                  : error_set(err, STRATA_EINVAL, "a tensor has an unknown dtype");
}

static int put_entry(FILE *f, const struct weight_view *v, size_t offset,
                     strata_error *err)
{
    json_t *name = json_string(v->name);
    char *text = name ? json_dumps(name, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
    json_decref(name);
    if (!text)
        return error_set(err, STRATA_EINVAL, "tensor '%s': its name is not UTF-8",
                         v->name);
    fprintf(f, "%s:{\"dtype\":\"%s\",\"shape\":[", text, weight_dtype_name(v->dtype));
    for (int d = 0; d < v->rank; d++)
        fprintf(f, "%s%" PRId64, d ? "," : "", v->dims[d]);
    fprintf(f, "],\"data_offsets\":[%zu,%zu]}", offset, offset + v->bytes);
    free(text);
    return STRATA_OK;
}

static int write_header(struct file_plan *p, const struct weight_view *const *order,
                        size_t n, strata_error *err)
{
    size_t size, offset = 0;
    int status = STRATA_OK;
    FILE *f = text_stream(&p->header, &size);
    if (!f)
        return error_no_memory(err, 0, "weights");
    fputc('{', f);
    for (size_t i = 0; status == STRATA_OK && i < n; i++) {
        fputs(i ? "," : "", f);
        status = put_entry(f, order[i], offset, err);
        offset += order[i]->bytes;
    }
    fputc('}', f);
    while (!ferror(f) && (ftell(f) + (long)sizeof p->length) % DATA_ALIGNMENT)
        fputc(' ', f);
    if (!text_finish(f, &p->header))
        return error_no_memory(err, 0, "weights");
    p->length = strlen(p->header);
    p->pieces[0] = (struct file_piece){&p->length, sizeof p->length};
    p->pieces[1] = (struct file_piece){p->header, p->length};
    return status;
}

static int plan_file(struct file_plan *p, const struct weight_view *views, size_t n,
                     strata_error *err)
{
    const struct weight_view **order = zalloc(n, sizeof *order, "weights", err);
    *p = (struct file_plan){0};
    p->pieces = zalloc(n + 2, sizeof *p->pieces, "weights", err);
    int status =
        order && p->pieces ? order_views(p, views, n, order, err) : STRATA_ENOMEM;
    if (status == STRATA_OK)
        status = write_header(p, order, n, err);
    free(order);
    return status;
}

static void free_plan(struct file_plan *p)
{
    free(p->pieces);
    free(p->header);
}

int weights_save(const char *path, const struct weight_view *views, size_t n,
                 strata_error *err)
{
    struct file_plan p;
    int status = plan_file(&p, views, n, err);
    if (status == STRATA_OK)
        status = file_write_pieces(path, p.pieces, p.n, err);
    free_plan(&p);
    return status;
}

int weights_write(void **bytes, size_t *size, const struct weight_view *views, size_t n,
                  strata_error *err)
{
    struct file_plan p;
    int status = plan_file(&p, views, n, err);
    char *to = NULL;
    *bytes = NULL;
    if (status == STRATA_OK &&
        !(*bytes = to = zalloc(sizeof p.length + p.length + p.size, 1, "weights", err)))
        status = STRATA_ENOMEM;
    for (size_t i = 0; to && i < p.n; i++) {
        if (p.pieces[i].size)
            memcpy(to, p.pieces[i].data, p.pieces[i].size);
        to += p.pieces[i].size;
    }
    *size = to ? (size_t)(to - (char *)*bytes) : 0;
    free_plan(&p);
    return status;
}
