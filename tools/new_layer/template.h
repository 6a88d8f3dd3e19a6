/* SPDX-License-Identifier: Apache-2.0
 *
 * Files written from templates. A template is the file as it will be, but for
 *   @name@        the value of a variable
 *   @if name      lines up to @else or @end, where the value is neither empty nor "0";
 *   @if !name     the reverse
 *   @for name     lines once for each i below the variable `name`; in them @name.x@ is
 *                 the variable `name.i.x`
 *   @include t    another template
 * A directive has a line of its own and starts it.
 */
#ifndef TOOLS_NEW_LAYER_TEMPLATE_H
#define TOOLS_NEW_LAYER_TEMPLATE_H

#include "core/status.h"

/* tools/new_layer/templates, built in. Ends with an entry of NULL. */
struct template_file {
    const char *name, *text;
};
extern const struct template_file template_files[];
/* NULL if there is none. */
const char *template_text(const char *name);

/* All zero is empty. Later values replace earlier ones of a name. */
struct template_values {
    char **pairs; /* name, value, name, value */
    size_t n, capacity;
};
int template_set(struct template_values *v, strata_error *err, const char *name,
                 const char *format, ...) PRINTF_LIKE(4, 5);
/* "" where it is not set. */
const char *template_get(const struct template_values *v, const char *name);
void template_free(struct template_values *v);

/* The file, malloc-ed. EINTERNAL with the template's line for a mistake in it. */
int template_expand(char **out, const char *name, const struct template_values *v,
                    strata_error *err);

#endif /* TOOLS_NEW_LAYER_TEMPLATE_H */
