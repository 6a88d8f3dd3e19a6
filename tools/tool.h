/* SPDX-License-Identifier: Apache-2.0
 *
 * What the subcommands share: options, opening the registry, network and engine, and
 * tables. Results go to stdout, messages to stderr.
 */
#ifndef TOOLS_TOOL_H
#define TOOLS_TOOL_H

#include <getopt.h>
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "core/text.h"
#include "engine/engine.h"

enum exit_code { EXIT_OK = 0, EXIT_MISMATCH = 1, EXIT_USAGE = 2, EXIT_NO_DEVICE = 3 };

struct tool_command {
    const char *name;
    const char *summary;  /* one line of `strata --help` */
    const char *usage;    /* "NET.ini [FILE]" */
    const char *help;     /* options of its own, and remarks; or "" */
    const char *examples; /* a line each, indented by two */
    int (*run)(int argc, char **argv);
};
extern const struct tool_command tool_run, tool_list, tool_describe, tool_explain,
    tool_bench, tool_profile, tool_compare, tool_check, tool_costs, tool_doctor,
    tool_new_layer, tool_build, tool_import, tool_inspect, tool_diff, tool_generate,
    tool_quantise, tool_deploy;

/* crash.c: name the plugin that a signal such as SIGSEGV, or exit, ends the process in.
 */
void tool_catch_crashes(void);
/* From here on exit is the command's own. */
void tool_ends(void);

/* Options every subcommand takes. */
struct tool_options {
    const char *device;
    char *plugin_path; /* of absolute folders */
    const char **plugins, **set, **define;
    const char **inputs;  /* "[NAME=]FILE": of networks, for commands that run them */
    const char **outputs; /* files that will be written */
    const char **dims;    /* "NAME=SIZE" of runs */
    bool inputs_needed;   /* all of the network's */
    bool outputs_named;   /* they are "[NAME=]FILE" */
    bool outputs_piped;   /* "-" among them is standard output, which takes one */
    int64_t item;         /* of IDX files among the inputs */
    /* What the command itself needs of the network, told before it is planned; or NULL.
     */
    int (*look)(const void *of, const strata_network *net, strata_error *err);
    const void *look_of;
    size_t n_plugins, n_set, n_define, n_inputs, n_outputs, n_dims;
    size_t plugins_capacity, set_capacity, define_capacity, inputs_capacity,
        outputs_capacity, dims_capacity;
    const char *costs, *save_costs;
    uint64_t trials; /* ns, of a network that does not say */
    bool allow_untrusted, measure_all;
    int format; /* enum table_format */
    bool help;
};
void tool_options_free(struct tool_options *o);

/* The FILE of "[NAME=]FILE". What has a '/' before its first '=' is a file, unless that
 * is the name of one of the network's inputs or outputs. */
const char *tool_file_of(const strata_network *net, const char *text);
/* Note an input of the network; false after reporting that memory ran out. */
bool tool_input(struct tool_options *o, const char *text);
/* The same of a name's size. */
bool tool_dim(struct tool_options *o, const char *text);
/* Note a file that the command will write (NULL: none); false after reporting that
 * memory ran out. "-" is refused with the others: where it means standard output, it is
 * no file and not noted. */
bool tool_output(struct tool_options *o, const char *path);

/* getopt_long over the common options and `own` (ended by {0}); own values must be from
 * TOOL_OWN up. Returns the option's value, -1 at the end, or '?' after reporting. */
enum { TOOL_OWN = 1000, TOOL_SHORT = 2000 /* plus a letter: has a short form */ };
int tool_next_option(struct tool_options *o, int argc, char **argv,
                     const struct option *own);

/* An option's number, least to most; false after reporting. */
bool tool_number(int64_t *out, const char *text, int64_t least, int64_t most,
                 const char *name);

/* EXIT_USAGE, reported, where an option was given that the command could only ignore;
 * else EXIT_OK. `uses` is what it has to do with. */
enum tool_use { USES_NETWORK = 1, USES_DEVICE = 2, USES_PLUGINS = 4, USES_FORMAT = 8 };
int tool_check_unused(const struct tool_command *c, const struct tool_options *o,
                      int uses);

/* A status of reading a file: that its contents are not supported is no missing device.
 */
int tool_file_status(int status, strata_error *err);
/* Report on stderr and give the exit code that fits: tool_error's is EXIT_USAGE. An error
 * with a place begins with it, "FILE:LINE:COLUMN: error:", others with "strata: error:".
 */
int tool_fail(const strata_error *err);
int tool_error(const char *format, ...) PRINTF_LIKE(1, 2);
int tool_usage(const struct tool_command *c, const char *format, ...) PRINTF_LIKE(2, 3);
/* printf for whatever a terminal may be shown: '?' for what it would obey. */
void tool_print(const char *format, ...) PRINTF_LIKE(1, 2);
/* A text as a file, or, if that is "-", on stdout like tool_print. */
int tool_write(const char *path, const char *text, size_t size, strata_error *err);
/* Whether some of what is printed was left out for lack of memory, and that it was. */
bool tool_output_lost(void);
void tool_lose_output(void);
/* The text of JSON on stdout, and one character of a string in it (returns its bytes):
 * escaped where tool_print writes '?'. */
int tool_print_json(const json_t *j, size_t flags); /* EXIT_OK, or after reporting */
size_t tool_put_json_character(const unsigned char *p, size_t left, FILE *out);
int tool_help(const struct tool_command *c);
/* For a command whose -o is a file: EXIT_USAGE, reported, for what is a format's name to
 * the others; else EXIT_OK. */
int tool_check_output(const struct tool_command *c, const char *path);

/* `strata completion`, whose entry is self, of the commands there are (completion.c). */
int tool_complete(const struct tool_command *self,
                  const struct tool_command *const *commands, size_t n, int argc,
                  char **argv);

/* Everything from the plugins to an engine; each pointer is NULL until it is made. */
struct tool_session {
    strata_registry *registry;
    strata_handle *handle;
    strata_network *network;
    strata_engine *engine;
    const char *given; /* the network's file as the user named it, maybe an ONNX model */
};
int tool_open_registry(struct tool_session *s, const struct tool_options *o,
                       strata_error *err);
/* An error if an engine file is where an INI file has to be. */
int tool_refuse_engine(const char *path, strata_error *err);
/* An error if the file to be written is called "-". */
int tool_refuse_dash(const char *path, strata_error *err);
/* An error if writing `path` would replace an input or what the network was read from. */
int tool_refuse_source(const struct tool_options *o, const struct tool_session *s,
                       const char *path, strata_error *err);
/* Checks the outputs, too. */
int tool_open_network(struct tool_session *s, const struct tool_options *o,
                      const char *path, strata_error *err);
/* The handle: of the device that is asked for, else that of the network's [runtime]. */
int tool_open_device(struct tool_session *s, const struct tool_options *o,
                     strata_error *err);
/* built.c: an engine that is built refuses what only a build could honour; what --set
 * says of its runs is the handle's, before it is loaded. */
int tool_check_built(const struct tool_options *o, const char *path, strata_error *err);
int tool_set_built(strata_handle *h, const struct tool_options *o, strata_error *err);
/* From an INI file, or from an engine file: told apart by how it begins. */
int tool_open_engine(struct tool_session *s, const struct tool_options *o,
                     const char *path, strata_error *err);
/* The same in two steps. The first one tells all that is wrong and can be told before the
 * network is planned, which may take minutes; an engine file is open then. */
int tool_prepare(struct tool_session *s, const struct tool_options *o, const char *path,
                 strata_error *err);
int tool_plan(struct tool_session *s, const struct tool_options *o, strata_error *err);
void tool_close(struct tool_session *s);

/* Long work between these two shows its progress, and a signal has it end at its next
 * step and keep what it has: progress_interrupted(). */
#define TOOL_SIGNALS 3
struct tool_signals {
    struct sigaction before[TOOL_SIGNALS];
};
void tool_begin_work(struct tool_signals *s);
void tool_end_work(const struct tool_signals *s);

/* ---- tables (tools/table.c) -------------------------------------------------------- */

enum table_format { TABLE_TEXT, TABLE_MARKDOWN, TABLE_CSV, TABLE_JSON, TABLE_JSONL };

struct table {
    const char *const *columns;
    size_t n_columns;
    char **cells; /* row-major, owned */
    size_t n_cells, capacity;
    bool failed;      /* out of memory somewhere */
    uint64_t numeric; /* columns aligned right, and not quoted in JSON */
};
void table_open(struct table *t, const char *const *columns, size_t n, uint64_t numeric);
void table_cell(struct table *t, const char *format, ...) PRINTF_LIKE(2, 3);
/* "md", "csv", ...; -1 if unknown. */
int table_format_parse(const char *name);
/* None of a table that lacks cells: those behind would stand in the wrong columns. */
void table_print(const struct table *t, int format, FILE *out);
void table_close(struct table *t);

/* "1 x 3 x 224 x 224"; static storage is not used: size at least 128. */
void tool_dims(char *text, size_t size, const int64_t *dims, int rank);

#endif /* TOOLS_TOOL_H */
