"""Communities and crime, unnormalised: 102 properties of places in the United States and their rate of violent crime.

The paper has 1992 rows and 102 inputs: the 124 candidates without the 22 columns of the police survey, which most
places did not answer, and the complete rows with a positive rate. The last step makes sense for a logged target only,
so it is logged unless asked otherwise.
"""

from __future__ import annotations

import numpy as np

from gpsift.paper.datasets.formats import comma_cells
from gpsift.paper.datasets.recipe import DEFAULT, Recipe, Table
from gpsift.paper.datasets.sources import UCI, RawFile, Source

# Raw columns: five identifiers, these candidates, eighteen possible targets.
_CANDIDATES = """
population householdsize racepctblack racePctWhite racePctAsian racePctHisp agePct12t21 agePct12t29 agePct16t24
agePct65up numbUrban pctUrban medIncome pctWWage pctWFarmSelf pctWInvInc pctWSocSec pctWPubAsst pctWRetire medFamInc
perCapInc whitePerCap blackPerCap indianPerCap AsianPerCap OtherPerCap HispPerCap NumUnderPov PctPopUnderPov
PctLess9thGrade PctNotHSGrad PctBSorMore PctUnemployed PctEmploy PctEmplManu PctEmplProfServ PctOccupManu
PctOccupMgmtProf MalePctDivorce MalePctNevMarr FemalePctDiv TotalPctDiv PersPerFam PctFam2Par PctKids2Par
PctYoungKids2Par PctTeen2Par PctWorkMomYoungKids PctWorkMom NumKidsBornNeverMar PctKidsBornNeverMar NumImmig
PctImmigRecent PctImmigRec5 PctImmigRec8 PctImmigRec10 PctRecentImmig PctRecImmig5 PctRecImmig8 PctRecImmig10
PctSpeakEnglOnly PctNotSpeakEnglWell PctLargHouseFam PctLargHouseOccup PersPerOccupHous PersPerOwnOccHous
PersPerRentOccHous PctPersOwnOccup PctPersDenseHous PctHousLess3BR MedNumBR HousVacant PctHousOccup PctHousOwnOcc
PctVacantBoarded PctVacMore6Mos MedYrHousBuilt PctHousNoPhone PctWOFullPlumb OwnOccLowQuart OwnOccMedVal
OwnOccHiQuart OwnOccQrange RentLowQ RentMedian RentHighQ RentQrange MedRent MedRentPctHousInc MedOwnCostPctInc
MedOwnCostPctIncNoMtg NumInShelters NumStreet PctForeignBorn PctBornSameState PctSameHouse85 PctSameCity85
PctSameState85 LemasSwornFT LemasSwFTPerPop LemasSwFTFieldOps LemasSwFTFieldPerPop LemasTotalReq LemasTotReqPerPop
PolicReqPerOffic PolicPerPop RacialMatchCommPol PctPolicWhite PctPolicBlack PctPolicHisp PctPolicAsian PctPolicMinor
OfficAssgnDrugUnits NumKindsDrugsSeiz PolicAveOTWorked LandArea PopDens PctUsePubTrans PolicCars PolicOperBudg
LemasPctPolicOnPatr LemasGangUnitDeploy LemasPctOfficDrugUn PolicBudgPerPop
"""
CANDIDATES = _CANDIDATES.split()
FIRST_CANDIDATE = 5
TARGET, TARGET_COLUMN, N_COLUMNS = "ViolentCrimesPerPop", 145, 147
_POLICE_SURVEY = """
LemasSwornFT LemasSwFTPerPop LemasSwFTFieldOps LemasSwFTFieldPerPop LemasTotalReq LemasTotReqPerPop PolicReqPerOffic
PolicPerPop RacialMatchCommPol PctPolicWhite PctPolicBlack PctPolicHisp PctPolicAsian PctPolicMinor
OfficAssgnDrugUnits NumKindsDrugsSeiz PolicAveOTWorked PolicCars PolicOperBudg LemasPctPolicOnPatr
LemasGangUnitDeploy PolicBudgPerPop
"""
POLICE_SURVEY = frozenset(_POLICE_SURVEY.split())
MISSING = "?"


def rate_table(cells: np.ndarray, _: str) -> Table:
    """Complete rows with a positive rate of violent crime."""
    if cells.shape[1] != N_COLUMNS:
        raise ValueError(f"{cells.shape[1]} columns, not {N_COLUMNS}")
    inputs = [j for j, name in enumerate(CANDIDATES) if name not in POLICE_SURVEY]
    chosen = cells[:, [*(FIRST_CANDIDATE + j for j in inputs), TARGET_COLUMN]]
    values = chosen[np.all(chosen != MISSING, axis=1)].astype(float)
    return Table((*(CANDIDATES[j] for j in inputs), TARGET), values[values[:, -1] > 0])


COMMUNITIES = RawFile(
    "CommViolPredUnnormalizedData.txt", comma_cells, "03f4019ae05ae0cdc64e9ea1f31e80c80c3bdd5fdb06a8cf93fdbc87f48c853f"
)

RECIPE = Recipe(
    name="crime",
    title="Crime",
    prepared="crime.csv",
    files=(COMMUNITIES,),
    sources=(
        Source(UCI, "static/public/211/communities+and+crime+unnormalized.zip", COMMUNITIES),
        Source(UCI, "ml/machine-learning-databases/00211/CommViolPredUnnormalizedData.txt", COMMUNITIES),
    ),
    table=rate_table,
    digests={DEFAULT: "e9fd716a9c05082df0b9bde996a1326000900feb23fe06c322e693096a068d9c"},
    n_train=400,
    log_target=True,
    citation=(
        "Redmond, M. (2011). Communities and Crime Unnormalized. UCI Machine Learning Repository, doi "
        "10.24432/C5PC8X. Redmond, M. and Baveja, A. (2002). A data-driven software tool for enabling cooperative "
        "information sharing among police departments. European Journal of Operational Research 141, 660-678."
    ),
    caveat=(
        "The inputs include the racial composition of places, and reported crime depends on who reports and who is "
        "policed. A ranking says what predicts these records, not what causes crime, and nothing about persons: "
        "treat it as a test of software. Two inputs are exact differences of others (rank 100 of 102)."
    ),
)
