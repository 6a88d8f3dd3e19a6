/* SPDX-License-Identifier: Apache-2.0
 *
 * strata describe: a layer as a commented INI section that can be pasted into a network.
 */
#include "tools/tool.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const type_names[] = {
    [STRATA_I64] = "integer", [STRATA_F64] = "real",    [STRATA_BOOL] = "yes or no",
    [STRATA_ENUM] = "choice", [STRATA_STRING] = "text", [STRATA_INTS] = "integers",
    [STRATA_REALS] = "reals",
};

/* "a|b|c": the i-th name. */
static void choice_name(char *out, size_t size, const char *choices, int index)
{
    while (index-- > 0 && strchr(choices, '|'))
        choices = strchr(choices, '|') + 1;
    snprintf(out, size, "%.*s", (int)strcspn(choices, "|"), choices);
}

static void default_text(char *out, size_t size, const strata_attr *a)
{
    out[0] = '\0'; /* an infinite default stands for none */
    switch (a->type) {
    case STRATA_I64:
        snprintf(out, size, "%.0f", a->def);
        break;
    case STRATA_F64:
        if (!isinf(a->def))
            snprintf(out, size, "%.9g", a->def);
        break;
    case STRATA_BOOL:
        snprintf(out, size, "%s", a->def != 0 ? "yes" : "no");
        break;
    case STRATA_ENUM:
        choice_name(out, size, a->choices, (int)a->def);
        break;
    default:
        snprintf(out, size, "%s", a->def_text ? a->def_text : "");
    }
}

static void print_attribute(const strata_attr *a)
{
    char text[256];
    bool required = a->flags & STRATA_REQUIRED;
    default_text(text, sizeof text, a);
    printf("\n; %s\n; %s", a->doc ? a->doc : a->name, type_names[a->type]);
    if (a->choices)
        printf(": %s", a->choices);
    if (a->min < a->max)
        printf(", %.9g to %.9g", a->min, a->max);
    printf(required ? ", required\n" : text[0] ? "\n" : ", not set by default\n");
    /* A line without a value would not be INI. */
    printf(required || !text[0] ? "; %s = %s\n" : "%s = %s\n", a->name, text);
}

static void print_weights(const struct registry_layer *l)
{
    if (l->n_weights == 0)
        return;
    printf("\n; weights = w:PREFIX reads these from [weights w]:\n");
    for (size_t i = 0; i < l->n_weights; i++)
        printf(";   PREFIX.%s%s%s%s\n", l->weights[i].name,
               l->weights[i].flags & STRATA_REQUIRED ? "" : " (optional)",
               l->weights[i].doc ? ": " : "", l->weights[i].doc ? l->weights[i].doc : "");
}

static void print_formats(uint64_t mask)
{
    bool first = true;
    if (mask == STRATA_SAME)
        printf("same");
    for (int f = 0; f < STRATA_FORMAT_COUNT && mask != STRATA_SAME; f++)
        if (mask & UINT64_C(1) << f) {
            printf("%s%s", first ? "" : "|", format_mask_name(UINT64_C(1) << f, 4));
            first = false;
        }
}

static void print_impl(const struct registry_impl *impl)
{
    struct module_info m = module_info(impl->module);
    printf(";   %s (%s), from %s %s\n", impl->impl.name,
           impl->impl.device == STRATA_HOST ? "host" : "cuda", m.path, m.version);
    for (uint32_t r = 0; r < impl->impl.rows.n; r++) {
        printf(";     ");
        for (int i = 0; i < STRATA_MAX_PORTS && impl->rows[r].in[i]; i++) {
            printf(i ? ", " : "");
            print_formats(impl->rows[r].in[i]);
        }
        printf(" -> ");
        for (int i = 0; i < STRATA_MAX_PORTS && impl->rows[r].out[i]; i++) {
            printf(i ? ", " : "");
            print_formats(impl->rows[r].out[i]);
        }
        printf("\n");
    }
}

static void print_layer(const struct registry_layer *l)
{
    struct module_info m = module_info(l->module);
    const strata_layer *d = &l->layer;
    printf("; %s: %s\n; inputs %d", l->full_name, d->doc ? d->doc : "", d->min_in);
    if (d->max_in < 0)
        printf(" or more");
    else if (d->max_in > d->min_in)
        printf(" to %d", d->max_in);
    if (d->n_out >= 0)
        printf(", outputs %d", d->n_out);
    printf("\n; defined in %s %s%s%s\n", m.path, m.version,
           m.build_id[0] ? ", build " : "", m.build_id);
    printf("[layer %c%s1]\ntype = %.*s\n", tolower((unsigned char)d->name[0]),
           d->name + 1, (int)strcspn(l->full_name, "@"), l->full_name);
    for (size_t i = 0; i < l->n_attrs; i++)
        print_attribute(&l->attrs[i]);
    print_weights(l);
    printf("\n; impls and formats, inputs -> outputs:\n");
    for (size_t i = 0; i < l->n_impls; i++)
        print_impl(&l->impls[i]);
}

static int run_describe(int argc, char **argv)
{
    struct tool_options o = {0};
    struct tool_session s = {0};
    strata_error err;
    const struct registry_layer *layer;
    int option, code = EXIT_OK;
    error_clear(&err);
    while ((option = tool_next_option(&o, argc, argv, NULL)) != -1)
        if (option == '?') {
            code = EXIT_USAGE;
            goto done;
        }
    if (o.help) {
        code = tool_help(&tool_describe);
    } else if (argc - optind != 1) {
        code = tool_usage(&tool_describe, "one layer name is needed");
    } else if (tool_open_registry(&s, &o, &err) != STRATA_OK ||
               registry_find(s.registry, argv[optind], &layer, &err) != STRATA_OK) {
        code = tool_fail(&err);
    } else {
        print_layer(layer);
    }
done:
    tool_close(&s);
    tool_options_free(&o);
    return code;
}

const struct tool_command tool_describe = {
    .name = "describe",
    .summary = "Describe a layer as an INI section to paste into a network",
    .usage = "LAYER [OPTION...]",
    .help =
        "Prints attributes with types, ranges and defaults, weights, and each impl's\n"
        "formats and file. What is printed is INI itself.\n\n"
        "Examples:\n"
        "  strata describe Convolution\n"
        "  strata describe org.example::LeakyReLU@1 --plugin ./leaky_relu.so\n",
    .run = run_describe,
};
