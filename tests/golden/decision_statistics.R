# Makes decision_statistics.json: effect sizes, reliability and areas under the curve by R's packages.
# Run in this folder: Rscript decision_statistics.R   (needs effectsize, psych, pROC, jsonlite)
suppressMessages({library(effectsize); library(psych); library(pROC); library(jsonlite)})
set.seed(20)
x <- round(rnorm(18, .6), 2); y <- round(rnorm(25), 2)
before <- round(rnorm(22), 2); after <- round(before + rnorm(22, .4, .8), 2)
d <- cohens_d(x, y); dz <- cohens_d(after, before, paired = TRUE)

# The noncentrality of F that effectsize finds, as f2 = lambda / df_error.
f2 <- function(f, df1, df2, ci) F_to_f2(f, df1, df2, ci = ci, alternative = "two.sided")
f_rows <- list(c(4, 2, 50), c(1.2, 3, 40), c(25, 1, 2000), c(0.3, 2, 30))
eta <- lapply(f_rows, function(r) { e <- f2(r[1], r[2], r[3], .95)
  list(f = r[1], df1 = r[2], df2 = r[3], eta2 = F_to_eta2(r[1], r[2], r[3])$Eta2_partial,
       lambda_low = e$CI_low * r[3], lambda_high = e$CI_high * r[3]) })

# Answers of six raters to forty sentences; and the same with holes.
truth <- rnorm(40); table6 <- sapply(1:6, function(j) round(truth + .3 * j + rnorm(40, 0, .9), 2))
icc <- ICC(table6, lmer = FALSE)$results
a <- psych::alpha(table6, check.keys = FALSE)$total$raw_alpha
feldt <- alpha.ci(a, n.obs = 40, n.var = 6)
holed <- table6; holed[1, 1] <- NA; holed[7, 3] <- NA; holed[7, 4] <- NA; holed[22, 6] <- NA
icc_lmer <- suppressMessages(ICC(holed, lmer = TRUE)$results)
pairwise <- cov(holed, use = "pairwise.complete.obs")

yes1 <- rbinom(60, 1, .6); yes2 <- ifelse(runif(60) < .75, yes1, 1 - yes1)
kap <- cohen.kappa(cbind(yes1, yes2))

label <- rep(0:1, c(35, 30)); s1 <- round(rnorm(65, label, 1), 1); s2 <- round(.6 * s1 + rnorm(65, .3 * label, .9), 1)
r1 <- roc(label, s1, direction = "<", quiet = TRUE); r2 <- roc(label, s2, direction = "<", quiet = TRUE)
test <- roc.test(r1, r2, method = "delong", paired = TRUE)
apart <- roc.test(r1, r2, method = "delong", paired = FALSE)

write_json(list(
  versions = c(R = R.version$major, effectsize = as.character(packageVersion("effectsize")),
               psych = as.character(packageVersion("psych")), pROC = as.character(packageVersion("pROC"))),
  groups = list(x = x, y = y, d = d$Cohens_d, low = d$CI_low, high = d$CI_high),
  pairs = list(first = after, second = before, d = dz[[1]], low = dz$CI_low, high = dz$CI_high,
               rank_biserial = rank_biserial(after, before, paired = TRUE)$r_rank_biserial),
  groups_rank_biserial = rank_biserial(x, y)$r_rank_biserial,
  eta = eta,
  answers = t(table6),
  icc = list(type = icc$type, value = icc$ICC, low = icc$`lower bound`, high = icc$`upper bound`),
  alpha = list(value = a, low = as.numeric(feldt$lower.ci), high = as.numeric(feldt$upper.ci)),
  holed = t(holed), icc_lmer = list(type = icc_lmer$type, value = icc_lmer$ICC),
  alpha_pairwise = 6 / 5 * (1 - sum(diag(pairwise)) / sum(pairwise)),
  kappa = list(first = yes1, second = yes2, value = kap$kappa, variance = kap$var.kappa),
  delong = list(label = label, first = s1, second = s2, auc = as.numeric(test$estimate), z = as.numeric(test$statistic),
                p = test$p.value, variance = c(var(r1), var(r2)), covariance = cov(r1, r2),
                low = as.numeric(ci(r1))[1], high = as.numeric(ci(r1))[3],
                difference_low = test$conf.int[1], difference_high = test$conf.int[2],
                unpaired = list(d = as.numeric(apart$statistic), df = as.numeric(apart$parameter), p = apart$p.value))
), "decision_statistics.json", digits = 12, auto_unbox = TRUE, na = "null")
