/* SPDX-License-Identifier: Apache-2.0
 *
 * A model as a network, and what its users ask of it.
 */
#include "network/import/private.h"

#include <string.h>

#define IR_NEWEST 14 /* that is known */

/* A file that is newer than what is known: most of it may mean what it always did. */
static void tell_versions(const struct onnx_model *m)
{
    if (m->ir_version > IR_NEWEST)
        log_line(STRATA_LOG_WARNING, "%s: IR version %lld is newer than %d; reading on",
                 m->path, (long long)m->ir_version, IR_NEWEST);
    for (size_t i = 0; i < m->n_opsets; i++) {
        const char *domain = m->opsets[i].domain;
        if ((!*domain || strcmp(domain, "ai.onnx") == 0) &&
            m->opsets[i].version > GRAPH_OPSET)
            log_line(STRATA_LOG_WARNING,
                     "%s: opset %lld of ai.onnx is newer than %d; reading on, its "
                     "operators as those of %d",
                     m->path, (long long)m->opsets[i].version, GRAPH_OPSET, GRAPH_OPSET);
    }
}

int import_make(struct import **out, const struct onnx_model *m,
                strata_registry *registry, const struct import_options *options,
                strata_error *err)
{
    struct import start = {.model = m, .registry = registry};
    if (options)
        start.options = *options;
    tell_versions(m);
    import_find_batch(&start);
    return start.batch.symbol ? import_with_batch(out, &start, err)
                              : import_at(out, &start, 0, NULL, err);
}

const struct import_refusal *import_refusals(const struct import *im, size_t *n)
{
    *n = im ? im->n_refusals : 0;
    return *n ? im->refusals : NULL;
}

const char *const *import_wanted(const struct import *im, size_t *n)
{
    *n = im ? im->n_wanted : 0;
    return *n ? im->wanted : NULL;
}

int import_find_input(const struct import *im, const char *name)
{
    for (size_t i = 0; i < im->g.n_inputs; i++)
        if (strcmp(im->g.values[im->g.inputs[i]].name, name) == 0)
            return (int)i;
    return -1;
}

bool import_reads_input(const struct import *im, int input)
{
    return im->g.values[im->g.inputs[input]].readers > 0;
}
