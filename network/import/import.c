/* SPDX-License-Identifier: Apache-2.0
 *
 * The passes in their order, and what they refuse.
 */
#include "network/import/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* All reasons as one message. */
static int refused(const struct import *im, strata_error *err)
{
    const size_t n =
        im->n_refusals < IMPORT_MAX_REFUSALS ? im->n_refusals : IMPORT_MAX_REFUSALS;
    if (im->all_refusals == 0)
        return STRATA_OK;
    error_set(err, STRATA_EUNSUPPORTED, "%s", im->refusals[0].text);
    for (size_t i = 1; i < n; i++)
        error_append(err, "\n%s", im->refusals[i].text);
    if (im->all_refusals > n)
        error_append(err, "\nand %zu more", im->all_refusals - n);
    return STRATA_EUNSUPPORTED;
}

static int run_passes(struct import *im, strata_error *err)
{
    static int (*const passes[])(struct import *, strata_error *) = {
        import_load,          import_fold, import_drop,
        import_find_patterns, import_map,  import_name};
    int status = STRATA_OK;
    for (size_t i = 0; status == STRATA_OK && i < ARRAY_LENGTH(passes); i++) {
        status = passes[i](im, err);
        if (status == STRATA_OK)
            status = arena_status(&im->g.arena, "a model", err);
        if (status == STRATA_OK && im->all_refusals)
            return refused(im, err);
    }
    return status;
}

int import_make(struct import **out, const struct onnx_model *m,
                strata_registry *registry, const struct import_options *options,
                strata_error *err)
{
    struct import *im = *out = zalloc(1, sizeof *im, "an import", err);
    if (!im)
        return STRATA_ENOMEM;
    im->model = m;
    im->registry = registry;
    if (options)
        im->options = *options;
    return run_passes(im, err);
}

void import_free(struct import *im)
{
    if (!im)
        return;
    for (size_t i = 0; i < im->n_sections; i++)
        section_free(im->sections[i]);
    names_free(&im->refused);
    names_free(&im->functions);
    arena_free(&im->g.arena);
    free(im);
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
