/* SPDX-License-Identifier: Apache-2.0
 *
 * strata generate: a prompt in, the text that a network goes on with out.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "io/file.h"
#include "language/sample.h"
#include "tools/generate/decoder.h"
#include "tools/generate/text.h"

enum {
    OPTION_PROMPT = TOOL_OWN,
    OPTION_PROMPT_FILE,
    OPTION_IDS,
    OPTION_TOKENIZER,
    OPTION_LENGTH,
    OPTION_TEMPERATURE,
    OPTION_TOP_K,
    OPTION_TOP_P,
    OPTION_MIN_P,
    OPTION_SEED,
    OPTION_END,
    OPTION_IGNORE_END,
    OPTION_NO_ECHO,
    OPTION_LOGITS
};

static const struct option options[] = {
    {"prompt", required_argument, NULL, OPTION_PROMPT},
    {"prompt-file", required_argument, NULL, OPTION_PROMPT_FILE},
    {"ids", required_argument, NULL, OPTION_IDS},
    {"tokenizer", required_argument, NULL, OPTION_TOKENIZER},
    {"length", required_argument, NULL, OPTION_LENGTH},
    {"temperature", required_argument, NULL, OPTION_TEMPERATURE},
    {"top-k", required_argument, NULL, OPTION_TOP_K},
    {"top-p", required_argument, NULL, OPTION_TOP_P},
    {"min-p", required_argument, NULL, OPTION_MIN_P},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"end", required_argument, NULL, OPTION_END},
    {"ignore-end", no_argument, NULL, OPTION_IGNORE_END},
    {"no-echo", no_argument, NULL, OPTION_NO_ECHO},
    {"logits", required_argument, NULL, OPTION_LOGITS},
    {0},
};

enum { MOST = 1000000000, MOST_ENDS = 16, MOST_PROMPT = 64 << 20 /* bytes */ };

struct generate_options {
    struct tool_options common;
    const char *prompt, *prompt_file, *ids, *tokenizer;
    const char *logits;
    const char *ends[MOST_ENDS];
    size_t n_ends;
    int64_t length;
    struct sampling how;
    bool warm, drawn; /* a temperature was given; or what may be drawn */
    bool ignore_end, no_echo;
};

enum ending { ENDED_BY_TOKEN, ENDED_BY_LENGTH, ENDED_BY_ROOM };

/* ---- options ------------------------------------------------------------------------
 */

static bool parse_seed(uint64_t *out, const char *text)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (end != text && !*end && !errno && *text != '-')
        return true;
    tool_error("--seed '%s': a number from 0 to 2^64 - 1 is needed", text);
    return false;
}

/* The range of an option is the sampler's to check. */
static bool parse_real(double *out, const char *text, const char *what)
{
    char *end;
    *out = text_to_real(text, &end);
    if (end != text && !*end)
        return true;
    tool_error("%s '%s': a number is needed", what, text);
    return false;
}

static bool add_end(struct generate_options *o, const char *text)
{
    if (o->n_ends == MOST_ENDS) {
        tool_error("--end is given more than %d times", MOST_ENDS);
        return false;
    }
    o->ends[o->n_ends++] = text;
    return true;
}

static bool set_text(const char **out, const char *text)
{
    *out = text;
    return true;
}

static bool set_flag(bool *out)
{
    return *out = true;
}

static bool sampling_option(struct generate_options *o, int option)
{
    switch (option) {
    case OPTION_TEMPERATURE:
        return set_flag(&o->warm) &&
               parse_real(&o->how.temperature, optarg, "--temperature");
    case OPTION_TOP_K:
        return set_flag(&o->drawn) &&
               tool_number(&o->how.top_k, optarg, 1, MOST, "--top-k");
    case OPTION_TOP_P:
        return set_flag(&o->drawn) && parse_real(&o->how.top_p, optarg, "--top-p");
    case OPTION_MIN_P:
        return set_flag(&o->drawn) && parse_real(&o->how.min_p, optarg, "--min-p");
    case OPTION_SEED:
        return parse_seed(&o->how.seed, optarg);
    }
    return false;
}

static bool own_option(struct generate_options *o, int option)
{
    switch (option) {
    case OPTION_PROMPT:
        return set_text(&o->prompt, optarg);
    case OPTION_PROMPT_FILE:
        return set_text(&o->prompt_file, optarg);
    case OPTION_IDS:
        return set_text(&o->ids, optarg);
    case OPTION_TOKENIZER:
        return set_text(&o->tokenizer, optarg);
    case OPTION_LOGITS:
        return set_text(&o->logits, optarg);
    case OPTION_LENGTH:
        return tool_number(&o->length, optarg, 1, MOST, "--length");
    case OPTION_END:
        return add_end(o, optarg);
    case OPTION_IGNORE_END:
        return set_flag(&o->ignore_end);
    case OPTION_NO_ECHO:
        return set_flag(&o->no_echo);
    }
    return sampling_option(o, option);
}

/* Whoever says what may be drawn wants to draw. */
static void settle_temperature(struct generate_options *o)
{
    if (o->drawn && !o->warm)
        o->how.temperature = 1;
}

/* EXIT_OK, or after reporting. */
static int check_options(const struct generate_options *o,
                         const struct tool_command *command)
{
    const int prompts = !!o->prompt + !!o->prompt_file + !!o->ids;
    if (prompts > 1)
        return tool_usage(command, "--prompt, --prompt-file and --ids are one another's "
                                   "alternatives");
    if (o->common.format != TABLE_TEXT && o->common.format != TABLE_JSON)
        return tool_usage(command, "-o: the text, or json");
    return EXIT_OK;
}

/* ---- the prompt and what ends -------------------------------------------------------
 */

static int take_prompt(const struct generate_options *o, struct text *t,
                       strata_error *err)
{
    struct file_bytes file = {0};
    if (o->ids)
        return text_numbers(t, o->ids, err);
    if (!o->prompt_file)
        return text_prompt(t, o->prompt ? o->prompt : "",
                           o->prompt ? strlen(o->prompt) : 0, err);
    int status = file_read(&file, o->prompt_file, MOST_PROMPT, err);
    if (status == STRATA_OK)
        status = text_prompt(t, file.data, file.size, err);
    file_free(&file);
    return status;
}

/* "</s>" or a number. */
static int take_ends(const struct generate_options *o, struct text *t, int32_t *ends,
                     strata_error *err)
{
    for (size_t i = 0; i < o->n_ends; i++) {
        char *rest;
        const long long id = strtoll(o->ends[i], &rest, 10);
        ends[i] = t->tokenizer ? tokenizer_find(t->tokenizer, o->ends[i]) : -1;
        if (ends[i] < 0 && rest != o->ends[i] && !*rest && id >= 0 && id <= INT32_MAX)
            ends[i] = (int32_t)id;
        if (ends[i] < 0)
            return error_set(err, STRATA_EINVAL, "--end '%s': there is no such token",
                             o->ends[i]);
    }
    t->ends = ends;
    t->n_ends = o->n_ends;
    t->goes_on = o->ignore_end;
    return STRATA_OK;
}

static int check_tokens(const struct text *t, int64_t vocabulary, strata_error *err)
{
    for (size_t i = 0; i < t->n_ends; i++)
        if (t->ends[i] >= vocabulary)
            return error_set(
                err, STRATA_EINVAL,
                "--end %d: there is no such token; the network has logits of "
                "%" PRId64,
                (int)t->ends[i], vocabulary);
    for (size_t i = 0; i < t->n_prompt; i++)
        if (t->tokens.ids[i] >= vocabulary)
            return error_set(err, STRATA_EINVAL,
                             "token %d of the prompt: the network has logits of %" PRId64
                             " tokens; is the tokenizer that of this network?",
                             (int)t->tokens.ids[i], vocabulary);
    return STRATA_OK;
}

/* ---- the loop -----------------------------------------------------------------------
 */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void tell_speed(const char *what, size_t n, double seconds)
{
    log_line(STRATA_LOG_INFO, "%s: %zu tokens in %.3f s, %.1f a second", what, n, seconds,
             seconds > 0 ? (double)n / seconds : 0);
}

/* Feeds come before all tokens but the first: the last one is never fed. */
static int go_on(struct text *t, struct decoder *d, struct sampler *s, int64_t length,
                 enum ending *ended, strata_error *err)
{
    int status = STRATA_OK;
    *ended = ENDED_BY_LENGTH;
    for (int64_t i = 0; i < length && status == STRATA_OK; i++) {
        int32_t token = 0;
        if (i > 0 && decoder_room(d) == 0) {
            *ended = ENDED_BY_ROOM;
            break;
        }
        if (i > 0)
            status = decoder_feed(d, &t->tokens.ids[t->tokens.n - 1], 1, err);
        if (status == STRATA_OK)
            status = sampler_next(s, decoder_logits(d), &token, err);
        if (status == STRATA_OK && text_is_over(t, token)) {
            *ended = ENDED_BY_TOKEN;
            break;
        }
        if (status == STRATA_OK)
            status = text_add(t, token, err);
    }
    return status;
}

static int make_text(const struct generate_options *o, struct text *t, struct decoder *d,
                     struct sampler *s, enum ending *ended, strata_error *err)
{
    const double begin = now();
    int status = decoder_feed(d, t->tokens.ids, t->n_prompt, err);
    const double fed = now();
    if (status != STRATA_OK)
        return status;
    status = text_begin(t, !o->no_echo, err);
    if (status == STRATA_OK)
        status = go_on(t, d, s, o->length, ended, err);
    const double over = now();
    const int end = text_end(t, err);
    if (status == STRATA_OK) {
        tell_speed("prompt", t->n_prompt, fed - begin);
        tell_speed("text", t->tokens.n - t->n_prompt, over - fed);
        if (*ended == ENDED_BY_ROOM)
            log_line(STRATA_LOG_WARNING,
                     "the text ends here: the network has no more room");
    }
    return status == STRATA_OK ? end : status;
}

/* ---- the whole ----------------------------------------------------------------------
 */

static json_t *numbers_of(const int32_t *ids, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(ids[i]));
    return list;
}

static int print_json(const struct text *t, enum ending ended)
{
    static const char *const endings[] = {"end", "length", "room"};
    const size_t n = t->n_prompt;
    json_t *j = json_object();
    json_object_set_new(j, "prompt", numbers_of(t->tokens.ids, n));
    json_object_set_new(j, "tokens", numbers_of(t->tokens.ids + n, t->tokens.n - n));
    json_object_set_new(j, "text",
                        json_stringn(t->made.bytes ? t->made.bytes : "", t->made.n));
    json_object_set_new(j, "ended_by", json_string(endings[ended]));
    const int code = tool_print_json(j, JSON_INDENT(2));
    json_decref(j);
    return code;
}

/* What the tokenizer knows no token for is not drawn. */
static int open_sampler(struct sampler **s, const struct sampling *how,
                        const struct decoder *d, const struct text *t, strata_error *err)
{
    const int64_t logits = decoder_vocabulary(d);
    const int status = sampler_open(s, how, (size_t)logits, err);
    for (int64_t i = 0; i < logits && t->tokenizer && status == STRATA_OK; i++)
        if (!tokenizer_has(t->tokenizer, (int32_t)i))
            sampler_exclude(*s, (int32_t)i);
    return status;
}

/* What is generated from. */
struct source {
    const struct generate_options *o;
    const struct text *text;
};

static int look(const void *of, const strata_network *net, strata_error *err)
{
    const struct source *s = of;
    int64_t vocabulary;
    int status = decoder_look(&vocabulary, net, s->o->logits, err);
    return status == STRATA_OK ? check_tokens(s->text, vocabulary, err) : status;
}

static int generate(const struct generate_options *o, const char *path, int *code,
                    strata_error *err)
{
    struct tool_session session = {0};
    struct text t = {.silent = o->common.format == TABLE_JSON};
    const struct source source = {o, &t};
    struct tool_options common = o->common;
    struct decoder *d = NULL;
    struct sampler *s = NULL;
    int32_t ends[MOST_ENDS];
    enum ending ended = ENDED_BY_LENGTH;
    common.look = look;
    common.look_of = &source;
    int status = text_open(&t, o->tokenizer, path, err);
    if (status == STRATA_OK)
        status = take_prompt(o, &t, err);
    if (status == STRATA_OK)
        status = take_ends(o, &t, ends, err);
    if (status == STRATA_OK)
        status = tool_open_engine(&session, &common, path, err);
    if (status == STRATA_OK)
        status = decoder_open(&d, session.engine, session.handle, o->logits, err);
    if (status == STRATA_OK)
        status = check_tokens(&t, decoder_vocabulary(d), err);
    if (status == STRATA_OK)
        status = open_sampler(&s, &o->how, d, &t, err);
    if (status == STRATA_OK)
        status = make_text(o, &t, d, s, &ended, err);
    if (status == STRATA_OK && t.silent)
        *code = print_json(&t, ended);
    sampler_free(s);
    decoder_close(d);
    tool_close(&session);
    text_close(&t);
    return status;
}

static int run_generate(int argc, char **argv)
{
    struct generate_options o = {.how = SAMPLING_GREEDY, .length = 256};
    strata_error err;
    int option, code = EXIT_OK;
    error_clear(&err);
    while ((option = tool_next_option(&o.common, argc, argv, options)) != -1)
        if (option == '?' || !own_option(&o, option)) {
            code = EXIT_USAGE;
            goto done;
        }
    if (o.common.help) {
        code = tool_help(&tool_generate);
        goto done;
    }
    settle_temperature(&o);
    if ((code = check_options(&o, &tool_generate)) != EXIT_OK)
        goto done;
    if (argc - optind != 1)
        code = tool_usage(&tool_generate, "one network file is needed");
    else if (generate(&o, argv[optind], &code, &err) != STRATA_OK)
        code = tool_fail(&err);
done:
    tool_options_free(&o.common);
    return code;
}

const struct tool_command tool_generate = {
    .name = "generate",
    .summary = "Go on with a text, by a network of its next token",
    .usage = "NET.ini|NET.engine --prompt TEXT [OPTION...]",
    .help =
        "The network has one input, of token numbers, T or 1 x T, and gives the logits\n"
        "of the token that comes next: of the last place, or of every one. With states\n"
        "it is fed each token once; without it is given the whole text every time.\n\n"
        "Options:\n"
        "      --prompt=TEXT         what the text begins with (default: nothing)\n"
        "      --prompt-file=FILE    the same, of a file\n"
        "      --ids=N,N,...         the same, as tokens; with no tokenizer tokens are\n"
        "                            printed, too\n"
        "      --tokenizer=FILE      of llama2.c or tokenizer.json; default: beside the\n"
        "                            network, NAME.tokenizer.json or .bin, "
        "tokenizer.json\n"
        "                            or .bin\n"
        "      --length=N            tokens to make at most (default 256)\n"
        "      --temperature=T       divides logits; 0 (default, unless one of the next\n"
        "                            three is given): always the likeliest\n"
        "      --top-k=N             draw from the N likeliest\n"
        "      --top-p=P             of these from the fewest with this share, above\n"
        "                            0, at most 1\n"
        "      --min-p=P             of these from those with this share of the\n"
        "                            likeliest's probability\n"
        "      --seed=N              of the draws (default 0): the same everywhere\n"
        "      --end=TOKEN           a token or its number that ends the text, too\n"
        "                            (repeatable)\n"
        "      --ignore-end          the tokenizer's tokens do not end it\n"
        "      --no-echo             leave the prompt out of what is printed\n"
        "      --logits=NAME         the output that has the logits, if there are "
        "several\n",
    .examples = "  strata generate stories.ini --prompt 'Once upon a time'\n"
                "  strata generate stories.ini --top-p 0.9 --temperature 0.8 --seed 7\n"
                "  strata generate llama.engine --prompt-file question.txt -o json\n",
    .run = run_generate,
};
