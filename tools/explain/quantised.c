/* SPDX-License-Identifier: Apache-2.0
 *
 * What a network's Quantize layers hold: the step, and what `strata quantise` noted of
 * the range beside it.
 */
#include "tools/explain/explain.h"

#include <math.h>
#include <string.h>

#include "calibrate/quantised.h"

/* Low, high and the share beyond, of the Quantize `NAME.quantize`; false: nobody noted.
 */
static bool find_range(float range[3], const strata_network *net, const char *layer)
{
    const size_t n = strlen(layer), ending = sizeof ".quantize" - 1;
    bool found = false;
    if (n <= ending || strcmp(layer + n - ending, ".quantize") != 0)
        return false;
    char *name = text_print(QUANTISED_RANGES "%.*s", (int)(n - ending), layer);
    for (size_t i = 0; name && i < net->n_files && !found; i++) {
        struct weight_view v;
        strata_error why = {0};
        found = weights_find(net->files[i], name, &v, &why) == STRATA_OK &&
                v.dtype == WEIGHT_F32 && v.bytes == 3 * sizeof *range;
        if (found)
            memcpy(range, v.data, v.bytes);
    }
    free(name);
    return found;
}

static int add_row(struct table *t, const strata_network *net,
                   const struct network_layer *l, strata_error *err)
{
    const struct network_weight *w = &l->weights[0];
    const int64_t n = network_elements(w->dims, w->rank);
    float range[3], *scales = zalloc((size_t)n, sizeof *scales, "scales", err);
    int status = scales ? network_weight_load(w, scales, err) : STRATA_ENOMEM;
    const bool noted = find_range(range, net, l->name);
    if (status == STRATA_OK) {
        table_cell(t, "%s", net->tensors[l->inputs[0]].name);
        table_cell(t, "%s", strata_dtype_name(net->tensors[l->outputs[0]].dtype));
        table_cell(t, n == 1 ? "%.6g" : "", (double)scales[0]);
        table_cell(t, noted ? "%.6g" : "", (double)range[0]);
        table_cell(t, noted ? "%.6g" : "", (double)range[1]);
        table_cell(t, noted && !isnan(range[2]) ? "%.4f" : "", 100 * (double)range[2]);
    }
    free(scales);
    return status;
}

int explain_print_quantised(const strata_engine *e, int format, strata_error *err)
{
    static const char *const columns[] = {
        "quantised tensor", "dtype", "scale", "low", "high", "saturated %"};
    const strata_network *net = e->network;
    struct table t;
    int status = STRATA_OK;
    table_open(&t, columns, ARRAY_LENGTH(columns), 0x3C);
    for (size_t i = 0; i < net->n_layers && status == STRATA_OK; i++)
        if (strcmp(net->layers[i].type->full_name, "core::Quantize@1") == 0)
            status = add_row(&t, net, &net->layers[i], err);
    if (status == STRATA_OK && (t.n_cells || format != TABLE_TEXT))
        table_print(&t, format, stdout);
    else if (status == STRATA_OK)
        tool_print("no tensor is quantised; `strata quantise` makes such a network\n");
    table_close(&t);
    return status;
}
