/* SPDX-License-Identifier: Apache-2.0
 *
 * What quantising a network costs, layer by layer and in its answers.
 */
#include "tools/quantise/quantise.h"

#include <math.h>
#include <string.h>

#include "calibrate/weights.h"

/* Decibels with one decimal, "" of nothing. */
static void cell_db(struct table *t, const struct noise *n, bool is)
{
    if (is)
        table_cell(t, "%.1f", noise_db(n)); /* infinite: exact */
    else
        table_cell(t, "%s", "");
}

static const char *precision_name(const struct report *r)
{
    const struct weight_form *form = r->scheme->weights_only;
    return form && form->bits == 4 ? "4 bits" : r->scheme->type->name;
}

static int add_row(struct table *t, const struct report *r, size_t i, strata_error *err)
{
    const struct network_layer *l = &r->scheme->net->layers[i];
    const bool kept = r->kept && r->kept[i];
    const struct layer_loss *loss = r->losses ? &r->losses->layers[i] : NULL;
    struct int8_weight w;
    int status = int8_weight_make(&w, l, r->scheme->computes[i], r->scheme->type,
                                  r->scheme->weights_only, err);
    if (status != STRATA_OK)
        return status;
    const struct noise weights = {w.signal, w.noise};
    int8_weight_free(&w);
    table_cell(t, "%s", l->name);
    table_cell(t, "%.*s", (int)strcspn(l->type->full_name + 6, "@"),
               l->type->full_name + 6);
    table_cell(t, "%s", kept ? "float" : precision_name(r));
    cell_db(t, &weights, true);
    cell_db(t, loss ? &loss->out : NULL, loss != NULL);
    cell_db(t, loss ? &loss->mended : NULL, loss != NULL);
    cell_db(t, r->alone ? &r->alone[i].out : NULL, r->alone != NULL);
    if (!r->alone)
        table_cell(t, "%s", "");
    else
        table_cell(t, "%zu", r->labelled ? r->alone[i].right : r->alone[i].same);
    return STRATA_OK;
}

static void print_summary(const struct report *r)
{
    const struct answers *a = r->answers;
    size_t kept = 0;
    for (size_t i = 0; i < r->scheme->net->n_layers && r->kept; i++)
        kept += r->scheme->computes[i] && r->kept[i];
    const size_t made = r->scheme->n_layers - kept;
    tool_print("\n%zu layer%s %s", made, made == 1 ? " is" : "s are", precision_name(r));
    if (kept)
        tool_print(", %zu stay floats for the budget", kept);
    tool_print("; %zu tensors between can be\n", r->scheme->n_tensors);
    if (!a)
        return;
    tool_print("of %zu samples %zu have the class that floats give; the outputs are ",
               a->samples, a->same);
    if (isinf(noise_db(&a->out)))
        tool_print("alike\n");
    else
        tool_print("%.1f dB above what changed\n", noise_db(&a->out));
    if (r->labelled)
        tool_print("right: %zu in floats (%.2f %%), %zu in %s (%.2f %%)\n",
                   a->right_floats, 100.0 * (double)a->right_floats / (double)a->samples,
                   a->right, precision_name(r),
                   100.0 * (double)a->right / (double)a->samples);
}

int report_print(const struct report *r, strata_error *err)
{
    const char *const columns[] = {
        "layer",     "type",
        "precision", "weights dB",
        "output dB", "mended dB",
        "alone dB",  r->labelled ? "alone right" : "alone same"};
    struct table t;
    int status = STRATA_OK;
    table_open(&t, columns, ARRAY_LENGTH(columns), 0xF8);
    for (size_t i = 0; i < r->scheme->net->n_layers && status == STRATA_OK; i++)
        if (r->scheme->computes[i])
            status = add_row(&t, r, i, err);
    if (status == STRATA_OK)
        table_print(&t, r->format, stdout);
    table_close(&t);
    if (status == STRATA_OK && (r->format == TABLE_TEXT || r->format == TABLE_MARKDOWN))
        print_summary(r);
    return status;
}
