/* kiln-lm: a language model that writes text. Its kernels come from a bundle that was generated when the program was built.
 *
 *     kiln-lm MODEL.gguf --prompt TEXT [-n N] [--chat | --bench] [option ...]
 *
 * Exit status: 0, 1 after a failure, 2 for bad usage, 130 when it was interrupted.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "chat.h"
#include "decoder.h"
#include "options.h"
#include "text_stream.h"
#include "tokenizer.h"

static volatile sig_atomic_t is_interrupted;

static void interrupt(int signal)
{
    (void)signal;
    is_interrupted = 1;
}

/* Seconds at the end of each phase. */
typedef struct times {
    double start, read, uploaded, ready, begun, prompted, end;
} times;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct session {
    options options;
    gguf_file *file;
    tokenizer *tokenizer;
    const chat_template *template;
    int32_t *tokens; /* tokens of the prompt */
    size_t token_count;
    int32_t *answer;
    size_t written; /* tokens of the answer */
    float *logits;
    model model;
    device device;
    decoder decoder;
    text_stream out;
    times times;
} session;

/* ---- the file and the prompt ----------------------------------------------------------------------------------------- */

static bool read_prompt(session *s)
{
    gguf_error error;
    char *wrapped = NULL;
    if (s->options.is_chat) {
        s->template = chat_find(s->file, &error);
        if (!s->template)
            return failed("%s", error.text);
        wrapped = chat_wrap(s->template, s->options.prompt);
        if (!wrapped)
            return failed("out of memory");
    }
    const char *text = wrapped ? wrapped : s->options.prompt;
    s->tokens = malloc(TOKENIZER_MOST_TOKENS(strlen(text)) * sizeof *s->tokens);
    const bool ok =
        s->tokens ? tokenizer_encode(s->tokenizer, text, strlen(text), s->tokens, &s->token_count, &error) ||
                        failed("%s", error.text)
                  : failed("out of memory");
    free(wrapped);
    return ok &&
           (s->token_count > 0 || failed("--prompt: expected a text of at least one token, found none"));
}

/* Returns the number of tokens that the cache gets room for. */
static bool choose_context(session *s)
{
    options *o = &s->options;
    const size_t needed = s->token_count + o->count;
    if (o->context == 0)
        o->context = needed < s->model.context ? (uint32_t)needed : s->model.context;
    if (o->context > s->model.context)
        return failed("--context: expected at most %u, which the model was trained for, found %u",
                      s->model.context, o->context);
    return s->token_count < o->context ||
           failed("--prompt: expected fewer tokens than the context has, %u, found %zu", o->context,
                  s->token_count);
}

static bool read_model(session *s)
{
    gguf_error error;
    s->file = gguf_open(s->options.model, &error);
    if (!s->file)
        return failed("%s: %s", s->options.model, error.text);
    if (!model_open(&s->model, s->file))
        return false;
    s->tokenizer = tokenizer_open(s->file, &error);
    if (!s->tokenizer)
        return failed("%s: %s", s->options.model, error.text);
    if (tokenizer_size(s->tokenizer) != s->model.vocabulary)
        return failed(
            "%s: tokenizer.ggml.tokens: expected a text for each of %u rows of token_embd.weight, found %u",
            s->options.model, s->model.vocabulary, tokenizer_size(s->tokenizer));
    return read_prompt(s) && choose_context(s);
}

/* Allocates the host's memory; nothing is allocated after it. */
static bool allocate(session *s)
{
    s->logits = malloc(s->model.vocabulary * sizeof *s->logits);
    s->options.sampler.order = malloc(s->model.vocabulary * sizeof *s->options.sampler.order);
    s->answer = malloc(s->options.count * sizeof *s->answer);
    return (s->logits && s->options.sampler.order && s->answer) || failed("out of memory");
}

static bool open_session(session *s)
{
    s->times.start = now();
    if (!read_model(s) || !allocate(s))
        return false;
    s->times.read = now();
    if (!device_open(&s->device, s->options.driver) || !model_upload(&s->model, s->file, &s->device))
        return false;
    s->times.uploaded = now();
    if (!decoder_open(&s->decoder, &s->model, &s->device, s->options.context,
                      (decoder_options){.has_no_graph = s->options.has_no_graphs}))
        return false;
    s->decoder.is_stopped = &is_interrupted;
    s->times.ready = now();
    s->out.out = stdout;
    return true;
}

static void close_session(session *s)
{
    device_close(&s->device);
    model_close(&s->model);
    tokenizer_close(s->tokenizer);
    gguf_close(s->file);
    free(s->tokens);
    free(s->logits);
    free(s->options.sampler.order);
    free(s->answer);
}

/* ---- the answer ------------------------------------------------------------------------------------------------------ */

static bool ends(const session *s, int32_t token)
{
    if (s->options.is_bench)
        return false;
    return tokenizer_is_end(s->tokenizer, token) ||
           (s->template && token == tokenizer_find(s->tokenizer, s->template->end));
}

static bool choose(session *s, int32_t *token)
{
    uint32_t chosen = 0;
    if (!device_download(&s->device, s->logits, s->decoder.logits, s->model.vocabulary * sizeof *s->logits))
        return false;
    if (!sample(&s->options.sampler, s->logits, s->model.vocabulary, &chosen))
        return failed("the best logit after token %u is not a finite number", s->decoder.length - 1);
    *token = (int32_t)chosen;
    return true;
}

static bool write_token(session *s, int32_t token)
{
    size_t count;
    s->answer[s->written++] = token;
    if (s->options.is_bench)
        return true;
    const char *bytes = tokenizer_bytes(s->tokenizer, token, false, &count);
    return text_stream_write(&s->out, bytes, count) || failed("the answer cannot be written");
}

static bool read_prompt_tokens(session *s)
{
    for (size_t from = 0; from < s->token_count && !is_interrupted; from += CHUNK) {
        const size_t left = s->token_count - from;
        if (!decoder_read(&s->decoder, s->tokens + from, left < CHUNK ? (uint32_t)left : CHUNK) ||
            !device_wait(&s->device))
            return false;
    }
    return true;
}

/* Runs the prompt and one token without timing, because the first run is slower. */
static bool warm_up(session *s)
{
    const bool ok = read_prompt_tokens(s) &&
                    (is_interrupted || (decoder_step(&s->decoder, s->tokens[0]) && device_wait(&s->device)));
    s->decoder.length = 0;
    return ok;
}

static bool answer(session *s)
{
    int32_t token = 0;
    if (s->options.is_bench && !warm_up(s))
        return false;
    s->times.begun = now();
    if (!read_prompt_tokens(s))
        return false;
    if (is_interrupted)
        return true;
    if (!choose(s, &token))
        return false;
    s->times.prompted = now();
    while (!ends(s, token)) {
        if (!write_token(s, token))
            return false;
        if (is_interrupted || s->written == s->options.count || s->decoder.length == s->options.context)
            break;
        if (!decoder_step(&s->decoder, token) || !choose(s, &token))
            return false;
    }
    if (s->options.is_bench)
        return true;
    return (text_stream_end(&s->out) && putchar('\n') != EOF && fflush(stdout) == 0) ||
           failed("the answer cannot be written");
}

/* ---- statistics ------------------------------------------------------------------------------------------------------ */

static const char *why_it_ended(const session *s)
{
    if (is_interrupted)
        return "interrupted";
    if (s->written == s->options.count)
        return "as many as -n says";
    return s->decoder.length == s->options.context ? "the context is full" : "the model ended it";
}

static void report(const session *s)
{
    const times *t = &s->times;
    const device *d = &s->device;
    const double answered = t->end - t->prompted;
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    const size_t steps = s->written ? s->written - 1 : 0; /* the first token belongs to the prompt */
    fprintf(stderr, "device     %s (sm_%u, driver %d.%d), %.1f MB allocated, %.1f MB of them weights\n",
            d->name, (unsigned)d->loader.device.sm, d->version / 1000, d->version % 1000 / 10,
            (double)d->allocated / 1e6, (double)s->model.weight_bytes / 1e6);
    fprintf(stderr, "host       %.1f MB resident at most\n", (double)used.ru_maxrss * 1024 / 1e6);
    fprintf(stderr, "start      read %.3f s, uploaded %.3f s, kernels loaded %.3f s\n", t->read - t->start,
            t->uploaded - t->read, t->ready - t->uploaded);
    if (t->prompted == 0) {
        fprintf(stderr, "interrupted in the prompt\n");
        return;
    }
    fprintf(stderr, "prompt     %zu tokens in %.3f s, %.2f per second; first token after %.3f s\n",
            s->token_count, t->prompted - t->begun, (double)s->token_count / (t->prompted - t->begun),
            t->prompted - t->start);
    fprintf(stderr, "answer     %zu tokens, %.2f per second, %u launches each; %s\n", s->written,
            steps ? (double)steps / answered : 0.0, s->decoder.launches_per_token, why_it_ended(s));
}

/* Writes the text as a JSON string; characters that would need an escape become '?'. */
static void print_json_text(const char *name, const char *text)
{
    printf("\"%s\": \"", name);
    for (; *text; text++)
        putchar(*text < ' ' || *text > '~' || *text == '"' || *text == '\\' ? '?' : *text);
    printf("\", ");
}

/* Returns how much of the memory's bandwidth the answer's tokens used, or 0 if that is unknown. */
static double memory_share(const session *s)
{
    const double bandwidth = device_bandwidth(&s->device), answered = s->times.end - s->times.prompted;
    const size_t steps = s->written > 1 ? s->written - 1 : 0;
    const uint64_t middle = s->token_count + steps / 2; /* tokens before the answer's middle token */
    return bandwidth > 0 ? (double)steps * (double)decoder_token_bytes(&s->decoder, (uint32_t)middle) /
                               bandwidth / answered
                         : 0;
}

/* README.md describes the members. */
static bool print_bench(const session *s)
{
    const times *t = &s->times;
    const device *d = &s->device;
    if (t->prompted == 0) {
        fprintf(stderr, "interrupted in the prompt\n");
        return true;
    }
    putchar('{');
    print_json_text("device", d->name);
    printf(
        "\"sm\": %u, \"driver\": \"%d.%d\", \"graphs\": %s, \"launches_per_token\": %u, \"load_seconds\": %.3f, ",
        (unsigned)d->loader.device.sm, d->version / 1000, d->version % 1000 / 10,
        s->options.has_no_graphs ? "false" : "true", s->decoder.launches_per_token, t->ready - t->start);
    printf("\"prompt_tokens\": %zu, \"prompt_tokens_per_second\": %.2f, \"answer_tokens\": %zu, ",
           s->token_count, (double)s->token_count / (t->prompted - t->begun), s->written);
    if (s->written > 1) /* the first token belongs to the prompt */
        printf("\"answer_tokens_per_second\": %.2f, ", (double)(s->written - 1) / (t->end - t->prompted));
    else
        printf("\"answer_tokens_per_second\": null, ");
    if (memory_share(s) > 0)
        printf("\"memory_share\": %.4g, ", memory_share(s));
    else
        printf("\"memory_share\": null, ");
    print_json_text("ended", why_it_ended(s));
    printf("\"tokens\": [");
    for (size_t i = 0; i < s->written; i++)
        printf("%s%" PRId32, i ? ", " : "", s->answer[i]);
    return (printf("]}\n") > 0 && fflush(stdout) == 0) || failed("the rates cannot be written");
}

int main(int argc, char **argv)
{
    static session s;
    if (!read_options(&s.options, argc, argv))
        return 2;
    if (s.options.is_help)
        return fflush(stdout) == 0 || failed("the usage cannot be written") ? 0 : 1;
    /* The second interrupt ends the program at once. */
    const struct sigaction once = {.sa_handler = interrupt, .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};
    sigaction(SIGINT, &once, NULL);
    bool ok = open_session(&s) && answer(&s);
    s.times.end = now();
    if (s.options.sampler.nan_count)
        fprintf(stderr, "kiln-lm: warning: %" PRIu64 " logits were NaN; their tokens were not chosen\n",
                s.options.sampler.nan_count);
    if (ok && s.options.is_bench)
        ok = print_bench(&s);
    else if (ok && !s.options.is_quiet)
        report(&s);
    close_session(&s);
    return !ok ? 1 : is_interrupted ? 130 : 0;
}
