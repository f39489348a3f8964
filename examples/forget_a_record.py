"""May a record be forgotten without training anew? A ledger of requests answers, with its arithmetic."""

import bayesdp as bd
from bayesdp.unlearn import Ledger, budget

training = bd.WorstCaseAccountant()  # of the run that made the model; a `Run` has it as run.tallies.worst_case
training.step(noise_multiplier=8.0, sampling_rate=0.02, steps=500)

ledger = Ledger(budget=budget.from_success(0.75))  # nobody tells the two models apart more often than 75 %
print(ledger.room(training), "records could be forgotten in this way")
for record in (17, 42):
    decision = ledger.request(record, training)
    print(decision)
    ledger = decision.ledger
