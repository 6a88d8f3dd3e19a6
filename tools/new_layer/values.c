/* SPDX-License-Identifier: Apache-2.0
 *
 * What the templates of strata new-layer are filled with.
 */
#include "tools/new_layer/new_layer.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "check/cases.h"

/* A capital begins a word when a small letter precedes or follows it, but for the LU that
 * ends the names of activations. */
void new_layer_snake(char *out, size_t size, const char *name)
{
    size_t n = 0;
    for (const char *at = name; *at && n + 2 < size; at++) {
        const bool after = at > name && !isupper((unsigned char)at[-1]);
        const bool before = at > name && at[1] && islower((unsigned char)at[1]);
        if (isupper((unsigned char)*at) && (after || before) && strcmp(at, "LU") != 0)
            out[n++] = '_';
        out[n++] = (char)tolower((unsigned char)*at);
    }
    out[n] = '\0';
}

static void upper(char *out, size_t size, const char *text)
{
    size_t n = 0;
    for (; text[n] && n + 1 < size; n++)
        out[n] = (char)toupper((unsigned char)text[n]);
    out[n] = '\0';
}

/* ---- attributes ----------------------------------------------------------------------
 */

static const struct {
    const char *c, *constant;
} attr_types[] = {
    [STRATA_I64] = {"int64_t", "STRATA_I64"},
    [STRATA_F64] = {"double", "STRATA_F64"},
    [STRATA_BOOL] = {"int32_t", "STRATA_BOOL"},
    [STRATA_ENUM] = {"int32_t", "STRATA_ENUM"},
    [STRATA_STRING] = {"strata_string", "STRATA_STRING"},
    [STRATA_INTS] = {"strata_ints", "STRATA_INTS"},
    [STRATA_REALS] = {"strata_reals", "STRATA_REALS"},
};

static bool is_text(int type)
{
    return type == STRATA_STRING || type == STRATA_INTS || type == STRATA_REALS;
}

/* Position of the default among the choices. */
static int choice_index(const struct new_attr *a)
{
    const size_t length = strlen(a->def);
    int index = 0;
    for (const char *at = a->choices; length > 0; index++) {
        if (strcspn(at, "|") == length && memcmp(at, a->def, length) == 0)
            return index;
        at += strcspn(at, "|") + 1;
    }
    return 0;
}

/* The number that stands in the table; without one, the number nearest to 0. */
static void default_number(char *out, size_t size, const struct new_attr *a)
{
    const char *number = a->def;
    if (!number[0] && a->min)
        number = strtod(a->min, NULL) > 0   ? a->min
                 : strtod(a->max, NULL) < 0 ? a->max
                                            : "";
    if (a->type == STRATA_ENUM)
        snprintf(out, size, "%d", choice_index(a));
    else if (a->type == STRATA_BOOL)
        snprintf(out, size, "%d", strcmp(a->def, "yes") == 0);
    else
        snprintf(out, size, "%s", is_text(a->type) ? "" : number);
}

static int set_attr(struct template_values *v, const struct new_attr *a, size_t i,
                    strata_error *err)
{
    char key[NEW_LAYER_WORD], number[NEW_LAYER_WORD];
    default_number(number, sizeof number, a);
    const struct {
        const char *name, *value;
    } fields[] = {
        {"name", a->name},
        {"ctype", attr_types[a->type].c},
        {"type", attr_types[a->type].constant},
        {"comment", a->type == STRATA_BOOL   ? " /* 0 or 1 */"
                    : a->type == STRATA_ENUM ? " /* index into the choices */"
                                             : ""},
        {"def", strcmp(number, "0") == 0 ? "" : number},
        {"range", a->min ? "1" : ""},
        {"min", a->min ? a->min : ""},
        {"max", a->max ? a->max : ""},
        {"choices", a->choices ? a->choices : ""},
        {"text", is_text(a->type) ? a->def : ""},
        {"doc", a->name},
        {"ini", a->def},
    };
    int status = STRATA_OK;
    for (size_t f = 0; f < ARRAY_LENGTH(fields) && status == STRATA_OK; f++) {
        snprintf(key, sizeof key, "attr.%zu.%s", i, fields[f].name);
        status = template_set(v, err, key, "%s", fields[f].value);
    }
    return status;
}

static int set_attrs(struct template_values *v, const struct new_layer *l,
                     strata_error *err)
{
    const char *slope = NULL;
    int status = template_set(v, err, "attr", "%zu", l->n_attrs);
    for (size_t i = 0; i < l->n_attrs && status == STRATA_OK; i++) {
        if (!slope && l->attrs[i].type == STRATA_F64)
            slope = l->attrs[i].name;
        status = set_attr(v, &l->attrs[i], i, err);
    }
    /* The formula to start from has the first real attribute for a slope. */
    if (status == STRATA_OK)
        status = slope ? template_set(v, err, "slope_float", "(float)p->%s", slope)
                       : template_set(v, err, "slope_float", "0.5f");
    if (status == STRATA_OK)
        status = slope ? template_set(v, err, "slope_double", "p->%s", slope)
                       : template_set(v, err, "slope_double", "0.5");
    if (status == STRATA_OK)
        status = template_set(v, err, "element_params", "%s",
                              slope ? "const params *p, " : "");
    if (status == STRATA_OK)
        status = template_set(v, err, "uses_params", "%d", slope != NULL);
    if (status == STRATA_OK)
        status = template_set(v, err, "element_arguments", "%s", slope ? "p, " : "");
    if (status == STRATA_OK)
        status = template_set(v, err, "element_job", "%s", slope ? "&j.p, " : "");
    return status;
}

/* ---- weights and ports ---------------------------------------------------------------
 */

static int set_weight(struct template_values *v, const struct new_weight *w, size_t i,
                      strata_error *err)
{
    char key[NEW_LAYER_WORD], constant[NEW_LAYER_WORD];
    upper(constant, sizeof constant, w->name);
    const struct {
        const char *name, *value;
    } fields[] = {
        {"name", w->name},
        {"constant", constant},
        {"optional", w->optional ? "1" : ""},
        {"null", w->optional ? " /* or NULL */" : ""},
        {"operator", i == 0 ? "*=" : "+="},
    };
    int status = STRATA_OK;
    for (size_t f = 0; f < ARRAY_LENGTH(fields) && status == STRATA_OK; f++) {
        snprintf(key, sizeof key, "weight.%zu.%s", i, fields[f].name);
        status = template_set(v, err, key, "%s", fields[f].value);
    }
    return status;
}

/* "x" or "x0, x1", "y" or "y, y:1". */
static int set_ports(struct template_values *v, int n_in, int n_out, strata_error *err)
{
    char inputs[256] = "", outputs[256] = "y", key[32];
    int status = template_set(v, err, "input", "%d", n_in);
    for (int i = 0; i < n_in && status == STRATA_OK; i++) {
        char name[16] = "x";
        if (n_in > 1)
            snprintf(name, sizeof name, "x%d", i);
        snprintf(key, sizeof key, "input.%d.name", i);
        status = template_set(v, err, key, "%s", name);
        const size_t used = strlen(inputs);
        snprintf(inputs + used, sizeof inputs - used, i ? ", %s" : "%s", name);
    }
    for (int i = 1; i < n_out; i++) {
        const size_t used = strlen(outputs);
        snprintf(outputs + used, sizeof outputs - used, ", y:%d", i);
    }
    if (status == STRATA_OK)
        status = template_set(v, err, "inputs", "%s", inputs);
    return status == STRATA_OK ? template_set(v, err, "outputs", "%s", outputs) : status;
}

static int set_random(struct template_values *v, int n_in, strata_error *err)
{
    char text[1024] = "";
    for (int i = 0; i < n_in; i++) {
        const size_t used = strlen(text);
        if (n_in == 1)
            snprintf(text, sizeof text, " --input random:1");
        else
            snprintf(text + used, sizeof text - used, " --input x%d=random:%d", i, i + 1);
    }
    return template_set(v, err, "random_inputs", "%s", text);
}

/* ---- extends -------------------------------------------------------------------------
 */

/* Whether a header of strata/layers, which stand beside the templates, has it. */
static bool in_headers(const char *needle)
{
    for (const struct template_file *f = template_files; f->name; f++)
        if (strstr(f->text, needle))
            return true;
    return false;
}

/* The type of layers.h: named as the layer, with '_' between words or without. */
static void params_type(char *out, size_t size, const char *layer)
{
    char snake[2 * NEW_LAYER_WORD], needle[3 * NEW_LAYER_WORD];
    new_layer_snake(snake, sizeof snake, layer);
    for (int pass = 0; pass < 2; pass++) {
        snprintf(needle, sizeof needle, " strata_%s;", snake);
        snprintf(out, size, "strata_%s", snake);
        if (in_headers(needle))
            return;
        size_t n = 0;
        for (const char *at = snake; *at; at++)
            if (*at != '_')
                snake[n++] = *at;
        snake[n] = '\0';
    }
    out[0] = '\0';
}

/* "2 x 8 x 8 x 8" */
static void write_shape(char *text, size_t size, const struct harness_shape *s)
{
    size_t used = 0;
    text[0] = '\0';
    for (int d = 0; d < s->rank && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, d ? " x %lld" : "%lld",
                                 (long long)s->dims[d]);
}

static int set_input(struct template_values *v, const struct cases_node *node, int i,
                     strata_error *err)
{
    char key[32], shape[128];
    const bool plain = node->in_dtype[i] == STRATA_FP32;
    write_shape(shape, sizeof shape, &node->in[i]);
    snprintf(key, sizeof key, "input.%d.shape", i);
    int status = template_set(v, err, key, "%s", shape);
    snprintf(key, sizeof key, "input.%d.dtype", i);
    return status == STRATA_OK
               ? template_set(v, err, key, "%s",
                              plain ? "" : strata_dtype_name(node->in_dtype[i]))
               : status;
}

/* The weights that the node has, optional ones too. */
static int set_case_weights(struct template_values *v, const struct registry_layer *base,
                            uint32_t weights, strata_error *err)
{
    char key[32];
    int n = 0, status = STRATA_OK;
    for (size_t i = 0; i < base->n_weights && status == STRATA_OK; i++) {
        if (!(weights >> i & 1))
            continue;
        snprintf(key, sizeof key, "weight.%d.name", n++);
        status = template_set(v, err, key, "%s", base->weights[i].name);
    }
    return status == STRATA_OK ? template_set(v, err, "weight", "%d", n) : status;
}

/* The attributes and inputs that the checker begins with: a network that works. */
static int set_case(struct template_values *v, const struct registry_layer *base,
                    strata_error *err)
{
    struct cases_node node;
    cases_of_layer(base, &node);
    char key[32], *rest = node.attrs;
    int lines = 0, status = set_ports(v, node.n_in, 1, err);
    if (status == STRATA_OK)
        status = set_random(v, node.n_in, err);
    for (int i = 0; i < node.n_in && status == STRATA_OK; i++)
        status = set_input(v, &node, i, err);
    if (status == STRATA_OK)
        status = set_case_weights(v, base, node.weights, err);
    for (char *line;
         status == STRATA_OK && rest && *rest && (line = strsep(&rest, ";"));) {
        snprintf(key, sizeof key, "case.%d.line", lines++);
        status = template_set(v, err, key, "%s", line + strspn(line, " "));
    }
    return status == STRATA_OK ? template_set(v, err, "case", "%d", lines) : status;
}

static int set_extends(struct template_values *v, const struct new_layer *l,
                       strata_error *err)
{
    char params[3 * NEW_LAYER_WORD], full[256];
    const struct registry_layer *base = l->base;
    const char *name = base->layer.name;
    params_type(params, sizeof params, name);
    snprintf(full, sizeof full, "%.*s", (int)strcspn(base->full_name, "@"),
             base->full_name);
    if (!params[0] && base->layer.params_size > 0)
        return error_set(
            err, STRATA_EUNSUPPORTED,
            "--extends %s: strata/layers.h has no struct for its parameters; "
            "declare in the module what the layer's own module declares",
            l->extends);
    int status = template_set(v, err, "extends", "%s", full);
    if (status == STRATA_OK)
        status = set_case(v, base, err);
    if (status == STRATA_OK)
        status = template_set(v, err, "extends_version", "%u", base->layer.version);
    if (status == STRATA_OK)
        status = template_set(v, err, "params", "%s", params);
    const bool convolution = strcmp(full, "core::Convolution") == 0;
    if (status == STRATA_OK)
        status = template_set(v, err, "convolution", "%d", convolution);
    if (status == STRATA_OK)
        status = template_set(v, err, "frame", "%d", !convolution);
    /* The checker looks for attributes that work, but may not think of what accept takes.
     */
    if (status == STRATA_OK && convolution)
        status =
            template_set(v, err, "check_options", " --attrs 'filters = 4; kernel = 1'");
    return status;
}

/* ---- all -----------------------------------------------------------------------------
 */

static int set_words(struct template_values *v, const struct new_layer *l,
                     strata_error *err)
{
    char file[2 * NEW_LAYER_WORD], in[16], out[16];
    upper(file, sizeof file, l->file);
    snprintf(in, sizeof in, "%d", l->n_in);
    snprintf(out, sizeof out, "%d", l->n_out);
    const bool has_header = l->cuda && !l->base;
    const struct {
        const char *name, *value;
    } words[] = {
        {"at", "@"}, /* for lines that would be directives */
        {"name", l->name},
        {"namespace", l->ns},
        {"file", l->file},
        {"FILE", file},
        {"in", in},
        {"out", out},
        {"cuda", l->cuda ? "1" : ""},
        {"has_header", has_header ? "1" : ""},
        {"header", has_header ? template_get(v, "header_file") : ""},
        {"several_in", l->n_in > 1 ? "1" : ""},
        {"several_out", l->n_out > 1 ? "1" : ""},
    };
    int status = STRATA_OK;
    for (size_t i = 0; i < ARRAY_LENGTH(words) && status == STRATA_OK; i++)
        status = template_set(v, err, words[i].name, "%s", words[i].value);
    return status;
}

int new_layer_values(struct template_values *v, const struct new_layer *l,
                     strata_error *err)
{
    int status = template_set(v, err, "header_file", " %s.h", l->file);
    if (status == STRATA_OK)
        status = set_words(v, l, err);
    if (status == STRATA_OK)
        status = set_attrs(v, l, err);
    if (status == STRATA_OK)
        status = template_set(v, err, "weight", "%zu", l->n_weights);
    for (size_t i = 0; i < l->n_weights && status == STRATA_OK; i++)
        status = set_weight(v, &l->weights[i], i, err);
    if (status == STRATA_OK)
        status = set_ports(v, l->n_in, l->n_out, err);
    if (status == STRATA_OK)
        status = set_random(v, l->n_in, err);
    if (status == STRATA_OK) /* set_extends may know better */
        status = template_set(v, err, "check_options", "%s", "");
    if (status == STRATA_OK)
        status =
            l->base ? set_extends(v, l, err) : template_set(v, err, "extends", "%s", "");
    return status;
}
