"""Make the tables of the paper's five data sets from the cells of their published files, by a recipe for each.

- Concrete (slump test): seven ingredients and the compressive strength after 28 days.
- Boston housing: thirteen properties of census tracts and the median value of homes.
- Automobile (imports of 1985): properties of cars and their price. The paper has 193 rows and 38 inputs. These
  are the complete rows without ``normalized-losses``. The paper does not say how the categories became numbers.
  `AUTOMOBILE_CODINGS` has several codings that give 38 inputs.
- Communities and crime, unnormalised: properties of places in the United States and their rate of violent crime. The
  paper has 1992 rows and 102 inputs: the 124 candidates without the 22 columns of the police survey, which most places
  did not answer, and the complete rows with a positive rate. Only a logged target needs a positive
  rate, so the target is logged by default.
- Pima diabetes: eight measurements of women and whether diabetes was diagnosed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from gpsift.paper.datasets import sources
from gpsift.paper.datasets.sources import OPENML, STATLIB, UCI, DataMismatch, RawFile, Source

DEFAULT = "default"
MISSING = "?"
# StatLib's file of the Boston data: a description of 22 lines, then two lines a row with 11 and 3 numbers.
STATLIB_HEADER, STATLIB_COLUMNS = 22, 14


def split_cells(text: str, separator: str | None = ",", header: int = 0) -> np.ndarray:
    """Split the lines below the header into cells, at commas or, with None, at any number of blanks."""
    lines = [line.strip() for line in text.splitlines() if line.strip()][header:]
    if not lines:
        raise ValueError("no rows")
    rows = [[cell.strip() for cell in line.split(separator)] for line in lines]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise ValueError(f"row {number} has {len(row)} cells, the first has {len(rows[0])}")
    return np.array(rows)


headed_cells = partial(split_cells, header=1)
spaced_cells = partial(split_cells, separator=None)


def arff_cells(text: str) -> np.ndarray:
    """Split the lines after ``@data`` of a dense ARFF file into cells, without comments and quotes."""
    lines = [line.strip() for line in text.splitlines() if not line.strip().startswith("%")]
    start = next((i for i, line in enumerate(lines) if line.lower().startswith("@data")), None)
    if start is None:
        raise ValueError("no line @data")
    return np.char.strip(split_cells("\n".join(lines[start + 1 :])), "'\"")


def statlib_cells(text: str) -> np.ndarray:
    """Split StatLib's file of the Boston data into cells."""
    words = " ".join(text.splitlines()[STATLIB_HEADER:]).split()
    if not words or len(words) % STATLIB_COLUMNS:
        raise ValueError(f"{len(words)} numbers below the description, not a multiple of {STATLIB_COLUMNS}")
    return np.array(words).reshape(-1, STATLIB_COLUMNS)


class Table(NamedTuple):
    """Names of columns and numbers (n, p + 1), the target last."""

    names: tuple[str, ...]
    values: np.ndarray


def headed_table(text: str) -> Table:
    """Read column names and numbers of a comma separated file with a header."""
    names = tuple(name.strip() for name in text.split("\n", 1)[0].split(","))
    return Table(names, headed_cells(text).astype(float))


@dataclass(frozen=True, eq=False)
class Recipe:
    """A recipe: the files of a data set, the function that makes its table of them, and the digest of that table."""

    name: str  # the name that `load` takes
    title: str  # the title in the paper
    prepared: str  # a file that holds the finished table
    files: tuple[RawFile, ...]  # the forms in which the raw data are published; all give the same cells
    sources: tuple[Source, ...]  # where to download one of them, in this order
    table: Callable[[np.ndarray, str], Table]  # from cells and coding
    digests: Mapping[str, str]  # `table_digest` of the outcome for each coding
    n_train: int  # rows of a split in the paper
    citation: str
    caveat: str
    log_target: bool = False  # by default
    is_classification: bool = False

    def read(self, name: str, content: bytes, coding: str, *, check: bool) -> Table:
        """Make the table from a file with this name and content; raise `DataMismatch` if it is not the expected one."""
        raw = next((file for file in self.files if file.name == name), None)
        if check and raw is not None and raw.sha256 is not None and sources.text_digest(content) != raw.sha256:
            raise DataMismatch(
                f"sha256 {sources.text_digest(content)}, expected {raw.sha256} (of the text with LF line ends)"
            )
        try:
            text = content.decode()
            table = headed_table(text) if raw is None else self.table(raw.cells(text), coding)
            if table.values.shape[1] != len(table.names):
                raise ValueError(f"{table.values.shape[1]} columns, not {len(table.names)}")
        except (ValueError, IndexError) as error:
            raise DataMismatch(f"cannot be read as {self.title} ({error})") from error
        digest = sources.table_digest(table.names, table.values)
        if check and digest != self.digests[coding]:
            rows, columns = table.values.shape
            raise DataMismatch(
                f"gives a table of {rows} rows and {columns} columns with sha256 {digest}, expected "
                f"{self.digests[coding]} (of names and numbers)"
            )
        return table


CONCRETE_INGREDIENTS = ("cement", "slag", "fly_ash", "water", "superplasticizer", "coarse_aggregate", "fine_aggregate")
# Raw columns: row number, the seven ingredients, slump, flow, strength.
FIRST_INGREDIENT, STRENGTH = 1, 10

CONCRETE_SLUMP = RawFile(
    "slump_test.data", headed_cells, "6745397c9c9d9aa37c59c554d6d866f7975decddeb3a140a485b0862fca11d70"
)


def strength_table(cells: np.ndarray, _: str) -> Table:
    """Select the ingredients and the compressive strength; slump and flow are outcomes of the same test, not inputs."""
    columns = [*range(FIRST_INGREDIENT, FIRST_INGREDIENT + len(CONCRETE_INGREDIENTS)), STRENGTH]
    return Table((*CONCRETE_INGREDIENTS, "compressive_strength_28d"), cells[:, columns].astype(float))


CONCRETE = Recipe(
    name="concrete",
    title="Concrete",
    prepared="concrete.csv",
    files=(CONCRETE_SLUMP,),
    sources=(
        Source(UCI, "static/public/182/concrete+slump+test.zip", CONCRETE_SLUMP),
        Source(UCI, "ml/machine-learning-databases/concrete/slump/slump_test.data", CONCRETE_SLUMP),
    ),
    table=strength_table,
    digests={DEFAULT: "e65c1fc28285f390eaeb2ea6ba17731d82f0e8966cedead9652c320777376478"},
    n_train=80,
    citation=(
        "Yeh, I-C. (2007). Modeling slump flow of concrete using second-order regressions and artificial neural "
        "networks. Cement and Concrete Composites 29(6), 474-480. UCI Machine Learning Repository, doi "
        "10.24432/C5FG7D."
    ),
    caveat=(
        "The paper does not name the target. Compressive strength is inferred: with it, and not with slump or flow, "
        "superplasticizer and coarse aggregate come last, as the paper reports."
    ),
)


_HOUSING = "CRIM ZN INDUS CHAS NOX RM AGE DIS RAD TAX PTRATIO B LSTAT MEDV"
HOUSING_COLUMNS = tuple(_HOUSING.split())

HOUSING_UCI = RawFile("housing.data", spaced_cells, "baadf72995725d76efe787b664e1f083388c79ba21ef9a7990d87f774184735a")
HOUSING_STATLIB = RawFile("boston", statlib_cells)
HOUSING_OPENML = RawFile("boston.arff", arff_cells)


def value_table(cells: np.ndarray, _: str) -> Table:
    """Convert all columns of the Boston data to numbers."""
    return Table(HOUSING_COLUMNS, cells.astype(float))


HOUSING = Recipe(
    name="housing",
    title="Boston Housing",
    prepared="boston_housing.csv",
    files=(HOUSING_UCI, HOUSING_STATLIB, HOUSING_OPENML),
    sources=(
        Source(STATLIB, "datasets/boston", HOUSING_STATLIB),
        Source(OPENML, "data/v1/download/52643/boston.arff", HOUSING_OPENML),
    ),
    table=value_table,
    digests={DEFAULT: "62eb9529aff475cd6b4160fe53dd5441ec0e9177905c02a32a811290413df6ff"},
    n_train=300,
    citation=(
        "Harrison, D. and Rubinfeld, D. L. (1978). Hedonic prices and the demand for clean air. Journal of "
        "Environmental Economics and Management 5, 81-102. StatLib."
    ),
    caveat=(
        "Column B is a transformed share of Black residents, made on the premise that segregation raises the price "
        "of homes; scikit-learn removed the data for that reason. Treat any ranking as a test of software. MEDV is "
        "capped at 50."
    ),
)


_RAW_COLUMNS = """
symboling normalized_losses make fuel_type aspiration num_of_doors body_style drive_wheels engine_location
wheel_base length width height curb_weight engine_type num_of_cylinders engine_size fuel_system bore stroke
compression_ratio horsepower peak_rpm city_mpg highway_mpg price
"""
AUTOMOBILE_COLUMNS = _RAW_COLUMNS.split()
AUTOMOBILE_TWO_LEVELS = ["fuel_type", "aspiration", "num_of_doors", "engine_location"]
AUTOMOBILE_MORE_LEVELS = ["body_style", "drive_wheels", "engine_type", "num_of_cylinders", "fuel_system"]
AUTOMOBILE_NOT_NUMERIC = {"normalized_losses", "make", "price", *AUTOMOBILE_TWO_LEVELS, *AUTOMOBILE_MORE_LEVELS}
AUTOMOBILE_NUMERIC = [name for name in AUTOMOBILE_COLUMNS if name not in AUTOMOBILE_NOT_NUMERIC]
NUMBER_WORDS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "eight": 8, "twelve": 12}


@dataclass(frozen=True)
class Coding:
    """A way to turn categories into numbers.

    With `one_hot`, categories of more than two levels get a column for every level. Otherwise, and always with two
    levels, they get one for every level but the alphabetically first.
    """

    as_numbers: tuple[str, ...] = ()  # categories that are number words
    one_hot: bool = False
    all_rows: bool = False  # levels are those of all 205 rows, not of the complete ones; some columns are then constant
    without: tuple[str, ...] = ()  # columns left out in the end


AUTOMOBILE_CODINGS = {
    # fuel_system_idi is 1 - fuel_type_gas in every row; without it the columns are linearly independent.
    DEFAULT: Coding(without=("fuel_system_idi",)),
    "A": Coding(as_numbers=("num_of_doors", "num_of_cylinders"), all_rows=True),
    "B": Coding(without=("symboling",)),
    "C": Coding(as_numbers=("num_of_cylinders",), one_hot=True, without=("symboling",)),
}


def price_table(cells: np.ndarray, coding: str) -> Table:
    """Select the complete rows: numeric columns, coded categories, price. The make is left out."""
    if cells.shape[1] != len(AUTOMOBILE_COLUMNS):
        raise ValueError(f"{cells.shape[1]} columns, not {len(AUTOMOBILE_COLUMNS)}")
    every_row = dict(zip(AUTOMOBILE_COLUMNS, cells.T, strict=True))
    complete = np.all([column != MISSING for name, column in every_row.items() if name != "normalized_losses"], axis=0)
    raw = {name: column[complete] for name, column in every_row.items()}
    choice = AUTOMOBILE_CODINGS[coding]
    columns = {name: raw[name].astype(float) for name in AUTOMOBILE_NUMERIC}
    for name in choice.as_numbers:
        unknown = sorted(set(raw[name].tolist()) - NUMBER_WORDS.keys())
        if unknown:
            raise ValueError(f"not number words: {', '.join(unknown)}")
        columns[name] = np.array([NUMBER_WORDS[word] for word in raw[name].tolist()], dtype=float)
    for name in AUTOMOBILE_TWO_LEVELS + AUTOMOBILE_MORE_LEVELS:
        if name not in choice.as_numbers:
            levels = np.unique(every_row[name] if choice.all_rows else raw[name])
            levels = levels[levels != MISSING]
            coded = levels if choice.one_hot and name in AUTOMOBILE_MORE_LEVELS else levels[1:]
            columns |= {f"{name}_{level}": (raw[name] == level).astype(float) for level in coded}
    columns = {name: column for name, column in columns.items() if name not in choice.without}
    columns["price"] = raw["price"].astype(float)
    return Table(tuple(columns), np.column_stack(list(columns.values())))


IMPORTS = RawFile("imports-85.data", split_cells, "125db8bd36a84801f7223faf54071d15f85f26c13a9a7aee63375ac46098fb7f")

AUTOMOBILE = Recipe(
    name="automobile",
    title="Automobile",
    prepared="automobile.csv",
    files=(IMPORTS,),
    sources=(
        Source(UCI, "static/public/10/automobile.zip", IMPORTS),
        Source(UCI, "ml/machine-learning-databases/autos/imports-85.data", IMPORTS),
    ),
    table=price_table,
    digests={
        DEFAULT: "69e9b9eeff1fdb52a1b5bdda30fc3f25cf4b154a46410bb8687101d44a493438",
        "A": "34f15184e70d01c9df921bfc0f5891acda9d8bfd00ee72484beb08a96eabef8c",
        "B": "58e08eb81198ee7a7cb08dfa9a1a6161b5b202c31403f7a439cd9b4b43b8352c",
        "C": "622e80463c12eec3e1c56e690876058f342bd3840d1dd6ba9e89ad2fd8f34816",
    },
    n_train=150,
    citation="Schlimmer, J. (1987). Automobile. UCI Machine Learning Repository, doi 10.24432/C5B01C.",
    caveat=(
        "The paper does not say how categories were coded, nor whether price was logged. Four 0/1 columns are 1 in a "
        "single row and are constant in many training splits."
    ),
)


# Raw columns: five identifiers, these candidates, eighteen possible targets. A star marks the police survey.
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
PctVacantBoarded PctVacMore6Mos MedYrHousBuilt PctHousNoPhone PctWOFullPlumb OwnOccLowQuart OwnOccMedVal OwnOccHiQuart
OwnOccQrange RentLowQ RentMedian RentHighQ RentQrange MedRent MedRentPctHousInc MedOwnCostPctInc MedOwnCostPctIncNoMtg
NumInShelters NumStreet PctForeignBorn PctBornSameState PctSameHouse85 PctSameCity85 PctSameState85 LemasSwornFT*
LemasSwFTPerPop* LemasSwFTFieldOps* LemasSwFTFieldPerPop* LemasTotalReq* LemasTotReqPerPop* PolicReqPerOffic*
PolicPerPop* RacialMatchCommPol* PctPolicWhite* PctPolicBlack* PctPolicHisp* PctPolicAsian* PctPolicMinor*
OfficAssgnDrugUnits* NumKindsDrugsSeiz* PolicAveOTWorked* LandArea PopDens PctUsePubTrans PolicCars* PolicOperBudg*
LemasPctPolicOnPatr* LemasGangUnitDeploy* LemasPctOfficDrugUn PolicBudgPerPop*
"""
CRIME_CANDIDATES = _CANDIDATES.replace("*", "").split()
POLICE_SURVEY = frozenset(name.removesuffix("*") for name in _CANDIDATES.split() if name.endswith("*"))
FIRST_CRIME_CANDIDATE = 5
CRIME_TARGET, CRIME_TARGET_COLUMN, N_CRIME_COLUMNS = "ViolentCrimesPerPop", 145, 147


def rate_table(cells: np.ndarray, _: str) -> Table:
    """Select the complete rows with a positive rate of violent crime."""
    if cells.shape[1] != N_CRIME_COLUMNS:
        raise ValueError(f"{cells.shape[1]} columns, not {N_CRIME_COLUMNS}")
    inputs = [j for j, name in enumerate(CRIME_CANDIDATES) if name not in POLICE_SURVEY]
    chosen = cells[:, [*(FIRST_CRIME_CANDIDATE + j for j in inputs), CRIME_TARGET_COLUMN]]
    values = chosen[np.all(chosen != MISSING, axis=1)].astype(float)
    return Table((*(CRIME_CANDIDATES[j] for j in inputs), CRIME_TARGET), values[values[:, -1] > 0])


COMMUNITIES = RawFile(
    "CommViolPredUnnormalizedData.txt", split_cells, "03f4019ae05ae0cdc64e9ea1f31e80c80c3bdd5fdb06a8cf93fdbc87f48c853f"
)

CRIME = Recipe(
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


PIMA_INPUTS = ("pregnancies", "glucose", "blood_pressure", "skin_thickness", "insulin", "bmi", "pedigree", "age")
# A zero in these columns is a missing value: no living person has one.
PIMA_POSITIVE = slice(1, 6)
PIMA_CLASSES = {"0": 0.0, "1": 1.0, "tested_negative": 0.0, "tested_positive": 1.0}

PIMA_UCI = RawFile(
    "pima-indians-diabetes.data", split_cells, "06f5b7c2cd7bca686fda4f92eab5f61e7ff6426a9acefa2e3dda04fc54293cf5"
)
PIMA_OPENML = RawFile("diabetes.arff", arff_cells)


def diabetes_table(cells: np.ndarray, _: str) -> Table:
    """Select the rows in which nothing is missing."""
    unknown = sorted(set(cells[:, -1].tolist()) - PIMA_CLASSES.keys())
    if unknown:
        raise ValueError(f"unknown class {unknown[0]!r}")
    inputs = cells[:, :-1].astype(float)
    values = np.column_stack([inputs, [PIMA_CLASSES[label] for label in cells[:, -1].tolist()]])
    return Table((*PIMA_INPUTS, "diabetes"), values[np.all(inputs[:, PIMA_POSITIVE] != 0, axis=1)])


PIMA = Recipe(
    name="pima",
    title="Pima Indians",
    prepared="pima.csv",
    files=(PIMA_UCI, PIMA_OPENML),
    sources=(Source(OPENML, "data/v1/download/37/diabetes.arff", PIMA_OPENML),),
    table=diabetes_table,
    digests={DEFAULT: "7e4b96f7b530ef961c1f0eef93c571163d7feac461c22d6262a461ef28935bf8"},
    n_train=300,
    is_classification=True,
    citation=(
        "Smith, J. W., Everhart, J. E., Dickson, W. C., Knowler, W. C. and Johannes, R. S. (1988). Using the ADAP "
        "learning algorithm to forecast the onset of diabetes mellitus. Proceedings of the Symposium on Computer "
        "Applications and Medical Care, 261-265. National Institute of Diabetes and Digestive and Kidney Diseases."
    ),
    caveat=(
        "Health data of women of the Akimel O'odham (Pima) people, taken for a study of the illness and reused ever "
        "since for ends in which they had no say (Radin 2017, Osiris 32, 43-64). Treat any ranking as a test of "
        "software: it is no medical finding and holds for no other people."
    ),
)


RECIPES = {recipe.name: recipe for recipe in (CONCRETE, HOUSING, AUTOMOBILE, CRIME, PIMA)}
