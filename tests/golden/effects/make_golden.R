# Write effects.json: effect sizes, equivalence tests, AUC, agreement and reliability as R's packages compute them.
#
#     Rscript make_golden.R      (in this folder)
#
# The data are drawn here and stored with the results, so that a test needs no second file.
suppressPackageStartupMessages({
  library(effectsize)
  library(pROC)
  library(psych)
  library(lme4)
  library(jsonlite)
})
RNGkind("Mersenne-Twister", "Inversion", "Rejection")
set.seed(20260102)

entry <- function(call, ...) c(list(call = call), list(...))
row_of <- function(call, table) c(list(call = call), as.list(as.data.frame(table)[1, , drop = FALSE]))
describe_test <- function(call, test) list(
  call = call, statistic = unname(test$statistic), df = unname(test$parameter), p = test$p.value,
  low = test$conf.int[1], high = test$conf.int[2], estimate = unname(test$estimate), method = test$method
)

# --- two groups and pairs; the rounded samples have ties ---

first <- round(rnorm(24, 0.7), 3)
second <- round(rnorm(18, 0, 1.4), 3)
before <- round(rnorm(21), 3)
after <- round(0.6 * before + rnorm(21, 0.45), 3)
ties_first <- sample(1:7, 24, replace = TRUE, prob = 7:1)
ties_second <- sample(1:7, 18, replace = TRUE)

compare_groups <- function(x, y) list(
  x = x, y = y,
  cohens_d = row_of("effectsize::cohens_d(x, y)", cohens_d(x, y)),
  cohens_d_welch = row_of("effectsize::cohens_d(x, y, pooled_sd = FALSE)", cohens_d(x, y, pooled_sd = FALSE)),
  hedges_g = row_of("effectsize::hedges_g(x, y)", hedges_g(x, y)),
  glass_delta = row_of("effectsize::glass_delta(x, y)", glass_delta(x, y)),
  rank_biserial = row_of("effectsize::rank_biserial(x, y)", rank_biserial(x, y)),
  superiority = row_of("effectsize::p_superiority(x, y, parametric = FALSE)", p_superiority(x, y, parametric = FALSE)),
  t_student = describe_test("t.test(x, y, var.equal = TRUE)", t.test(x, y, var.equal = TRUE)),
  t_welch = describe_test("t.test(x, y)", t.test(x, y)),
  wilcoxon = describe_test("wilcox.test(x, y, exact = FALSE, correct = TRUE)",
                           wilcox.test(x, y, exact = FALSE, correct = TRUE))
)
compare_pairs <- function(x, y) list(
  x = x, y = y,
  cohens_d = row_of("effectsize::cohens_d(x, y, paired = TRUE)", cohens_d(x, y, paired = TRUE)),
  hedges_g = row_of("effectsize::hedges_g(x, y, paired = TRUE)", hedges_g(x, y, paired = TRUE)),
  rank_biserial = row_of("effectsize::rank_biserial(x, y, paired = TRUE)", rank_biserial(x, y, paired = TRUE)),
  t = describe_test("t.test(x, y, paired = TRUE)", t.test(x, y, paired = TRUE)),
  wilcoxon = describe_test("wilcox.test(x, y, paired = TRUE, exact = FALSE, correct = TRUE)",
                           wilcox.test(x, y, paired = TRUE, exact = FALSE, correct = TRUE))
)

# --- equivalence: two one-sided t-tests; equivalent at .05 where the larger p is below, or the 90 % interval within ---

test_equivalence <- function(call, bound, ...) {
  low <- t.test(..., mu = -bound, alternative = "greater")
  high <- t.test(..., mu = bound, alternative = "less")
  inner <- t.test(..., conf.level = 0.90)$conf.int
  list(call = sprintf("t.test(%s, mu = -bound, alternative = \"greater\"), t.test(%s, mu = bound, alternative = \"less\")",
                      call, call),
       bound = bound, t_low = unname(low$statistic), p_low = low$p.value, t_high = unname(high$statistic),
       p_high = high$p.value, p = max(low$p.value, high$p.value), df = unname(low$parameter),
       low_90 = inner[1], high_90 = inner[2])
}
near <- round(rnorm(40, 0.05, 0.5), 3)
near_other <- round(rnorm(35, 0, 0.6), 3)
equivalence <- list(
  x = near, y = near_other,
  one_sample = test_equivalence("x", 0.3, near),
  welch = test_equivalence("x, y", 0.3, near, near_other),
  student = test_equivalence("x, y, var.equal = TRUE", 0.3, near, near_other, var.equal = TRUE),
  paired = test_equivalence("x[1:35], y, paired = TRUE", 0.3, near[1:35], near_other, paired = TRUE)
)

# --- several groups ---

value <- round(c(rnorm(14, 0), rnorm(17, 0.5), rnorm(12, 0.9)), 3)
group <- factor(rep(c("a", "b", "c"), c(14, 17, 12)))
one_way <- aov(value ~ group)
f <- summary(one_way)[[1]]
kruskal <- kruskal.test(value ~ group)
set.seed(1)  # the intervals of the rank effect sizes are bootstrapped
several <- list(
  value = value, group = as.character(group),
  anova = entry("summary(aov(value ~ group))", f = f[["F value"]][1], df = f[["Df"]], p = f[["Pr(>F)"]][1]),
  eta_squared = row_of("effectsize::eta_squared(aov(value ~ group), alternative = \"two.sided\")",
                       eta_squared(one_way, alternative = "two.sided", verbose = FALSE)),
  eta_squared_greater = row_of("effectsize::eta_squared(aov(value ~ group))", eta_squared(one_way, verbose = FALSE)),
  omega_squared = row_of("effectsize::omega_squared(aov(value ~ group), alternative = \"two.sided\")",
                         omega_squared(one_way, alternative = "two.sided", verbose = FALSE)),
  epsilon_squared = row_of("effectsize::epsilon_squared(aov(value ~ group), alternative = \"two.sided\")",
                           epsilon_squared(one_way, alternative = "two.sided", verbose = FALSE)),
  kruskal = entry("kruskal.test(value ~ group)", statistic = unname(kruskal$statistic), p = kruskal$p.value),
  rank_epsilon_squared = entry("effectsize::rank_epsilon_squared(value ~ group, ci = NULL)",
                               estimate = rank_epsilon_squared(value ~ group, ci = NULL)[[1]]),
  rank_eta_squared = entry("effectsize::rank_eta_squared(value ~ group, ci = NULL)",
                           estimate = rank_eta_squared(value ~ group, ci = NULL)[[1]]),
  tukey = lapply(seq_len(3), function(row) {
    table <- TukeyHSD(one_way)$group
    c(list(call = "TukeyHSD(aov(value ~ group))", contrast = rownames(table)[row]), as.list(table[row, ]))
  })
)
cells <- expand.grid(kind = c("a", "b", "c"), condition = c("base", "long"), copy = 1:9)
cells$value <- round(rnorm(54) + 0.5 * (cells$kind == "b") + 0.4 * (cells$condition == "long"), 3)
two_way <- aov(value ~ kind * condition, cells)
partial <- as.data.frame(eta_squared(two_way, partial = TRUE, alternative = "two.sided", verbose = FALSE))
factorial <- list(
  kind = as.character(cells$kind), condition = as.character(cells$condition), value = cells$value,
  call = "effectsize::eta_squared(aov(value ~ kind * condition), partial = TRUE, alternative = \"two.sided\")",
  partial_eta_squared = partial
)

# --- AUC: DeLong's interval, paired and unpaired tests ---

label <- rbinom(60, 1, 0.45)
score <- round(rnorm(60, label), 2)
rival <- round(0.5 * score + rnorm(60, 0.4 * label), 2)
other_label <- rbinom(45, 1, 0.5)
other_score <- round(rnorm(45, 0.6 * other_label), 1)  # with ties
curve <- function(label, score) roc(label, score, levels = c(0, 1), direction = "<", quiet = TRUE)
describe_curve <- function(label, score) {
  limits <- ci.auc(curve(label, score), method = "delong")
  entry("pROC::ci.auc(roc(label, score, levels = c(0, 1), direction = \"<\"), method = \"delong\")",
        auc = limits[2], low = limits[1], high = limits[3], variance = var(curve(label, score)))
}
paired <- roc.test(curve(label, score), curve(label, rival), method = "delong", paired = TRUE)
unpaired <- roc.test(curve(label, score), curve(other_label, other_score), method = "delong", paired = FALSE)
auc <- list(
  label = label, score = score, rival = rival, other_label = other_label, other_score = other_score,
  curve_score = describe_curve(label, score), curve_rival = describe_curve(label, rival),
  curve_other = describe_curve(other_label, other_score),
  paired = entry("pROC::roc.test(score, rival, method = \"delong\", paired = TRUE)", z = unname(paired$statistic),
                 p = paired$p.value, low = paired$conf.int[1], high = paired$conf.int[2]),
  unpaired = entry("pROC::roc.test(score, other_score, method = \"delong\", paired = FALSE)",
                   d = unname(unpaired$statistic), df = unname(unpaired$parameter), p = unpaired$p.value)
)

# --- reliability: intraclass correlations and alpha; 12 targets × 5 raters ---

targets <- rnorm(12, 0, 1)
raters <- rnorm(5, 0, 0.5)
ratings <- round(outer(targets, raters, "+") + matrix(rnorm(60, 0, 0.7), 12) + 4, 1)
icc <- psych::ICC(ratings, lmer = FALSE)$results
feldt <- psych::alpha(as.data.frame(ratings), warnings = FALSE, n.iter = 1)
holes <- ratings
holes[cbind(c(2, 5, 9), c(1, 4, 4))] <- NA
long <- data.frame(rating = c(holes), target = factor(rep(1:12, 5)), rater = factor(rep(1:5, each = 12)))
fit <- lmer(rating ~ 1 + (1 | target) + (1 | rater), long,
            control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhoend = 1e-9, rhobeg = 0.02)))
parts <- as.data.frame(VarCorr(fit))
variance <- setNames(parts$vcov, parts$grp)
pairwise_alpha <- psych::alpha(as.data.frame(holes), warnings = FALSE)
reliability <- list(
  ratings = ratings, icc_call = "psych::ICC(ratings, lmer = FALSE, alpha = 0.05)",
  icc = lapply(seq_len(nrow(icc)), function(row) as.list(icc[row, ])),
  alpha = entry("psych::alpha(ratings)", raw = feldt$total$raw_alpha, standardized = feldt$total$std.alpha,
                feldt_low = as.numeric(feldt$feldt$lower.ci), feldt_high = as.numeric(feldt$feldt$upper.ci)),
  with_missing = holes,
  missing_variances = entry("lme4::lmer(rating ~ 1 + (1 | target) + (1 | rater), REML = TRUE)",
                            target = variance[["target"]], rater = variance[["rater"]], residual = variance[["Residual"]],
                            icc2 = variance[["target"]] / sum(variance),
                            icc2k = variance[["target"]] /
                              (variance[["target"]] + (variance[["rater"]] + variance[["Residual"]]) / 5),
                            icc3 = variance[["target"]] / (variance[["target"]] + variance[["Residual"]])),
  missing_alpha = entry("psych::alpha(with_missing), covariances of the answers that a pair of raters share",
                        raw = pairwise_alpha$total$raw_alpha)
)

# --- agreement: Cohen's and Fleiss' kappa ---

truth <- sample(1:3, 50, replace = TRUE, prob = c(0.5, 0.3, 0.2))
judge <- function() ifelse(runif(50) < 0.65, truth, sample(1:3, 50, replace = TRUE))
judges <- replicate(4, judge())
kappa <- suppressWarnings(psych::cohen.kappa(judges[, 1:2]))
# Fleiss (1971), with the variance of kappa = 0 of Fleiss, Nee and Landis (1979).
fleiss_kappa <- function(votes) {
  counts <- sapply(sort(unique(c(votes))), function(category) rowSums(votes == category))
  n <- nrow(votes)
  m <- ncol(votes)
  share <- colSums(counts) / (n * m)
  agreement <- mean((rowSums(counts^2) - m) / (m * (m - 1)))
  value <- (agreement - sum(share^2)) / (1 - sum(share^2))
  spread <- sum(share * (1 - share))
  variance <- 2 * (spread^2 - sum(share * (1 - share) * (1 - 2 * share))) / (n * m * (m - 1) * spread^2)
  list(kappa = value, se_null = sqrt(variance), z = value / sqrt(variance), p = 2 * pnorm(-abs(value / sqrt(variance))))
}
agreement <- list(
  votes = judges,
  cohen = entry("psych::cohen.kappa(votes[, 1:2])", kappa = kappa$kappa, weighted_quadratic = kappa$weighted.kappa,
                se = sqrt(kappa$var.kappa), se_weighted = sqrt(kappa$var.weighted),
                low = kappa$confid["unweighted kappa", "lower"], high = kappa$confid["unweighted kappa", "upper"],
                weighted_low = kappa$confid["weighted kappa", "lower"],
                weighted_high = kappa$confid["weighted kappa", "upper"]),
  fleiss = c(list(call = "fleiss_kappa(votes) of make_golden.R"), fleiss_kappa(judges))
)

# --- correlations, proportions, adjusted p ---

x <- round(rnorm(9), 2)
y <- round(0.6 * x + rnorm(9), 2)
correlations <- list(
  x = x, y = y,
  pearson = describe_test("cor.test(x, y)", cor.test(x, y)),
  spearman = entry("cor.test(x, y, method = \"spearman\", exact = TRUE)",
                   rho = unname(cor.test(x, y, method = "spearman", exact = TRUE)$estimate),
                   p = cor.test(x, y, method = "spearman", exact = TRUE)$p.value),
  kendall = entry("cor.test(x, y, method = \"kendall\", exact = TRUE)",
                  tau = unname(cor.test(x, y, method = "kendall", exact = TRUE)$estimate),
                  p = cor.test(x, y, method = "kendall", exact = TRUE)$p.value)
)
wilson <- prop.test(19, 20, correct = FALSE)$conf.int
exact <- binom.test(19, 20)$conf.int
proportions <- list(
  wilson = entry("prop.test(19, 20, correct = FALSE)", low = wilson[1], high = wilson[2]),
  exact = entry("binom.test(19, 20)", low = exact[1], high = exact[2])
)
p <- c(0.001, 0.012, 0.02, 0.04, 0.3, 0.5)
adjusted <- list(p = p, call = "p.adjust(p, method)", holm = p.adjust(p, "holm"), BH = p.adjust(p, "BH"),
                 bonferroni = p.adjust(p, "bonferroni"))

names <- c("effectsize", "pROC", "psych", "lme4")
write_json(
  list(versions = c(list(R = paste(R.version$major, R.version$minor, sep = ".")),
                    sapply(names, function(name) as.character(packageVersion(name)), simplify = FALSE)),
       groups = compare_groups(first, second), groups_with_ties = compare_groups(ties_first, ties_second),
       pairs = compare_pairs(before, after), pairs_with_ties = compare_pairs(ties_first[1:18], ties_second),
       equivalence = equivalence, several = several, factorial = factorial, auc = auc, reliability = reliability,
       agreement = agreement, correlations = correlations, proportions = proportions, adjusted = adjusted),
  "effects.json", auto_unbox = TRUE, digits = I(12), pretty = 1, na = "null", null = "null"
)
