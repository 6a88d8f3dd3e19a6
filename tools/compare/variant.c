/* SPDX-License-Identifier: Apache-2.0
 *
 * Options with more overrides than were given.
 */
#include "tools/compare/variant.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"

/* Takes the text. */
static int add(const char ***list, size_t *capacity, size_t *n, char *text,
               strata_error *err)
{
    if (!text || grow(list, capacity, *n, sizeof **list, NULL) != STRATA_OK) {
        free(text);
        return error_no_memory(err, 0, "an option");
    }
    (*list)[(*n)++] = text;
    return STRATA_OK;
}

int variant_set(struct tool_options *o, strata_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = text_print_va(format, args);
    va_end(args);
    return add(&o->set, &o->set_capacity, &o->n_set, text, err);
}

int variant_set_once(struct tool_options *o, strata_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = text_print_va(format, args);
    va_end(args);
    for (size_t i = 0; text && i < o->n_set; i++)
        if (strcmp(o->set[i], text) == 0) {
            free(text);
            return STRATA_OK;
        }
    return add(&o->set, &o->set_capacity, &o->n_set, text, err);
}

int variant_define(struct tool_options *o, strata_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = text_print_va(format, args);
    va_end(args);
    return add(&o->define, &o->define_capacity, &o->n_define, text, err);
}

int variant_open(struct tool_options *o, const struct tool_options *given,
                 strata_error *err)
{
    int status = STRATA_OK;
    *o = *given;
    o->set = o->define = NULL;
    o->n_set = o->n_define = o->set_capacity = o->define_capacity = 0;
    for (size_t i = 0; i < given->n_set && status == STRATA_OK; i++)
        status = variant_set(o, err, "%s", given->set[i]);
    for (size_t i = 0; i < given->n_define && status == STRATA_OK; i++)
        status = variant_define(o, err, "%s", given->define[i]);
    return status;
}

void variant_close(struct tool_options *o)
{
    for (size_t i = 0; i < o->n_set; i++)
        free((char *)o->set[i]);
    for (size_t i = 0; i < o->n_define; i++)
        free((char *)o->define[i]);
    free(o->set);
    free(o->define);
}
