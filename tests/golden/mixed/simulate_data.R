# Write the tables of data/: four data sets of lme4 and one simulated experiment.
#
#     Rscript simulate_data.R      (in this folder; then make_golden.R)
#
# sleepstudy, Penicillin and cbpp are whole. InstEval is the ratings by every 25th student (the students whose number
# divides by 25): 3,297 of 73,421 rows. SOURCES.md says where they come from.
suppressPackageStartupMessages(library(lme4))
RNGkind("Mersenne-Twister", "Inversion", "Rejection")

write_table <- function(frame, name) {
  write.csv(frame, file.path("data", paste0(name, ".csv")), row.names = FALSE, quote = FALSE, eol = "\n")
}

write_table(sleepstudy, "sleepstudy")
write_table(Penicillin, "penicillin")

# One row an animal, so that the outcome is 0 or 1.
animals <- cbpp[rep(seq_len(nrow(cbpp)), cbpp$size), c("herd", "period")]
animals$ill <- unlist(Map(function(ill, size) rep(c(1, 0), c(ill, size - ill)), cbpp$incidence, cbpp$size))
write_table(animals, "cbpp")

drawn <- InstEval[as.integer(as.character(InstEval$s)) %% 25 == 0, c("s", "d", "dept", "service", "y")]
write_table(drawn, "insteval")

# --- 30 subjects × 40 items: every subject reads every item once, in one of two conditions (Latin square) ---

set.seed(20260101)
n_subjects <- 30
n_items <- 40
frame <- expand.grid(item = seq_len(n_items), subject = seq_len(n_subjects))
long <- (frame$subject + frame$item) %% 2
frame$condition <- ifelse(long == 1, "long", "base")
frame$kind <- c("agreement", "binding", "island")[frame$item %% 3 + 1]
frame$length <- round(rnorm(nrow(frame)), 3)

# The effects of `n` groups on the intercept and on the slope of the condition.
draw_effects <- function(n, sd_intercept, sd_slope, correlation) {
  z <- matrix(rnorm(2 * n), n)
  cbind(sd_intercept * z[, 1], sd_slope * (correlation * z[, 1] + sqrt(1 - correlation^2) * z[, 2]))
}

# A linear predictor with slopes of the condition for subjects and items.
draw_predictor <- function(constant, condition, subject, item) {
  by_subject <- do.call(draw_effects, c(n_subjects, as.list(subject)))
  by_item <- do.call(draw_effects, c(n_items, as.list(item)))
  constant + condition * long +
    by_subject[frame$subject, 1] + by_subject[frame$subject, 2] * long +
    by_item[frame$item, 1] + by_item[frame$item, 2] * long
}

# A slope of the length, and an effect of each kind, that differ by subject.
by_length <- rnorm(n_subjects, 0, 0.3)[frame$subject] * frame$length
by_kind <- matrix(rnorm(3 * n_subjects, 0, 0.4), n_subjects)[cbind(frame$subject, frame$item %% 3 + 1)]
kinds <- c(agreement = 0, binding = 0.3, island = -0.4)[frame$kind]
linear <- draw_predictor(1, 0.4, c(0.6, 0.5, 0.4), c(0.4, 0.4, -0.3)) + kinds + by_kind +
  0.25 * frame$length + by_length
frame$linear <- round(linear + rnorm(nrow(frame), 0, 0.8), 4)
flat <- draw_predictor(0, 0.3, c(0.5, 0, 0), c(0.4, 0, 0)) + 0.2 * kinds
frame$no_slopes <- round(flat + rnorm(nrow(frame)), 4)
time <- draw_predictor(520, 35, c(80, 45, 0.3), c(40, 70, 0.2)) + 40 * kinds + 12 * frame$length
frame$reaction_time <- round(time + rnorm(nrow(frame), 0, 100), 1)
logit <- draw_predictor(0.4, 0.6, c(0.8, 0.7, 0.3), c(0.7, 0.6, -0.2)) + kinds + 2 * by_length
frame$correct <- as.integer(runif(nrow(frame)) < plogis(logit))
latent <- draw_predictor(0, 0.8, c(0.9, 0.6, 0.2), c(0.7, 0.5, -0.3)) + kinds + rlogis(nrow(frame))
frame$likert <- findInterval(latent, c(-1.8, -0.5, 0.7, 2.2)) + 1

# Which rows the unbalanced data keep: fewer of the later subjects and of the later items.
chance <- plogis(1.6 - 0.06 * frame$subject - 0.03 * frame$item)
frame$kept <- as.integer(runif(nrow(frame)) < chance)
frame$subject <- sprintf("s%02d", frame$subject)
frame$item <- sprintf("i%02d", frame$item)
write_table(frame[, c("subject", "item", "condition", "kind", "length", "linear", "no_slopes", "reaction_time",
                      "correct", "likert", "kept")], "experiment")
