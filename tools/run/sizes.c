/* SPDX-License-Identifier: Apache-2.0
 *
 * Which binding an option is of; and the sizes of a run: those of `--dim NAME=SIZE`, then
 * those that the files of inputs have.
 */
#include "tools/run/run.h"

#include <strata/sizes.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int run_find_binding(const strata_network *net, const char *text, bool is_input,
                     int *index, const char **file, strata_error *err)
{
    const size_t n = strcspn(text, "="), n_inputs = net->n_inputs - net->n_states;
    const size_t count = is_input ? n_inputs : net->n_outputs - net->n_states;
    const size_t first = is_input ? 0 : n_inputs; /* outputs are bound behind inputs */
    *file = tool_file_of(net, text);
    *index = (int)first;
    if (*file == text && count == 1)
        return STRATA_OK;
    for (size_t i = 0; i < count && *file != text; i++) {
        const char *name = is_input ? net->inputs[i].name : net->outputs[i].name;
        *index = (int)(first + i);
        if (strlen(name) == n && memcmp(text, name, n) == 0)
            return STRATA_OK;
    }
    error_set(err, STRATA_EINVAL, "'%s': write NAME=FILE, where NAME is one of:", text);
    for (size_t i = 0; i < count; i++)
        error_append(err, " %s", is_input ? net->inputs[i].name : net->outputs[i].name);
    return STRATA_EINVAL;
}

const char *run_first_name(const strata_network *net, const char *input, int *length)
{
    for (size_t i = 0; i < config_sections(net->config); i++) {
        struct config_section *s = config_section(net->config, i);
        const bool is = strcmp(s->kind, "input") == 0 && strcmp(s->name, input) == 0;
        const struct config_pair *shape = is ? config_get(s, "shape") : NULL;
        if (!shape || !isalpha((unsigned char)shape->value[0]))
            continue;
        for (*length = 1; isalnum((unsigned char)shape->value[*length]) ||
                          shape->value[*length] == '_';)
            ++*length;
        const size_t blanks = strspn(shape->value + *length, " \t");
        if (shape->value[(size_t)*length + blanks] == '+')
            break; /* a sum is no name's size */
        return shape->value;
    }
    *length = 0;
    return "";
}

/* "T=77"; text is the option's. */
static int set_size(struct run_sizes *s, const strata_network *net, const char *text,
                    strata_error *err)
{
    const char *equals = strchr(text, '=');
    char name[CONFIG_MAX_KEY + 1], *end = NULL;
    const long long size = equals ? strtoll(equals + 1, &end, 10) : 0;
    int symbol;
    if (!equals || equals - text > CONFIG_MAX_KEY || end == equals + 1 || *end)
        return error_set(err, STRATA_EINVAL, "--dim %s: write NAME=SIZE, as T=77", text);
    memcpy(name, text, (size_t)(equals - text));
    name[equals - text] = '\0';
    int status = network_require_symbol(&symbol, net, name, err);
    if (status != STRATA_OK) {
        error_append(err,
                     "; one that has a single size there, as the batch of a model, "
                     "is given another by --set profile.%s=%lld",
                     name, size);
        return status;
    }
    s->given[symbol] = true;
    s->sizes[symbol] = size;
    return network_check_size(net, symbol, size, err);
}

static bool is_npy(const char *path)
{
    char magic[6] = "";
    struct stat about;
    FILE *f =
        stat(path, &about) == 0 && S_ISREG(about.st_mode) ? fopen(path, "rb") : NULL;
    const bool is = f && fread(magic, 1, sizeof magic, f) == sizeof magic &&
                    memcmp(magic, "\x93NUMPY", sizeof magic) == 0;
    if (f)
        fclose(f);
    return is;
}

/* Of a file's dims those that names of the input's shape stand for, unless they were
 * given; what does not fit is told when the file is read. */
static int take_dims(struct run_sizes *s, const strata_network *net, int index,
                     const struct weight_view *v, strata_error *err)
{
    const struct network_input *in = &net->inputs[index];
    const int ones =
        v->rank - net->tensors[in->tensor].rank; /* in front, left out or added */
    int status = STRATA_OK;
    for (int d = 0; d < net->tensors[in->tensor].rank && status == STRATA_OK; d++) {
        const int symbol = in->symbols[d];
        if (symbol < 0 || s->given[symbol])
            continue;
        s->given[symbol] = true;
        s->sizes[symbol] = d + ones < 0 ? 1 : v->dims[d + ones];
        status = network_check_size(net, symbol, s->sizes[symbol], err);
    }
    return status;
}

static int take_file(struct run_sizes *s, const strata_network *net, int index,
                     const char *path, strata_error *err)
{
    struct weights *w = NULL;
    if (!is_npy(path))
        return STRATA_OK;
    int status = weights_open(&w, path, NULL, err);
    if (status == STRATA_OK && weights_count(w) == 1) {
        const struct weight_view v = weights_at(w, 0);
        status = take_dims(s, net, index, &v, err);
        if (status != STRATA_OK)
            error_prefix(err, "%s", path);
    }
    weights_close(w);
    return tool_file_status(status, err);
}

int run_find_sizes(struct run_sizes *s, const strata_network *net,
                   const struct tool_options *o, strata_error *err)
{
    int status = STRATA_OK;
    *s = (struct run_sizes){.given = {false}};
    for (size_t i = 0; i < net->n_symbols; i++)
        s->sizes[i] = net->symbols[i].most;
    for (size_t i = 0; i < o->n_dims && status == STRATA_OK; i++)
        status = set_size(s, net, o->dims[i], err);
    for (size_t i = 0; i < o->n_inputs && status == STRATA_OK; i++) {
        int index;
        const char *file;
        status = run_find_binding(net, o->inputs[i], true, &index, &file, err);
        if (status == STRATA_OK)
            status = take_file(s, net, index, file, err);
    }
    return status;
}

int run_set_sizes(strata_context *c, const struct tool_options *o, strata_error *err)
{
    const strata_network *net = c->engine->network;
    struct run_sizes s;
    int status = run_find_sizes(&s, net, o, err);
    for (size_t i = 0; i < net->n_symbols && status == STRATA_OK; i++)
        if (s.given[i])
            status =
                strata_context_set_dimension(c, net->symbols[i].name, s.sizes[i], err);
    return status;
}
