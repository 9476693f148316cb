/** A record: values by the names of the survey's dimensions. Missing and unknown values are answered like any others. */
export type Record = { [name: string]: unknown };

/** What is sent: m answers, each the question's number and its fields. */
export interface Report {
  format: "hdr4me-report";
  version: 1;
  survey: string;
  answers: number[][];
}

/** A report in the queue. `id` is its Idempotency-Key, 32 hexadecimal digits, made with the report. */
export interface Item {
  id: string;
  url: string;
  report: Report;
}

/** What the ledger says about this survey. */
export interface Status {
  /** How many more reports the ledger allows; a fraction for permanent answers; below 0 if the limits were lowered. */
  left: number;
  /** Reports that are paid for and not delivered yet. */
  waiting: number;
  /** Reports that were delivered. Who has the id may delete the report: DELETE url/id. */
  sent: { id: string; url: string }[];
  out?: boolean;
}

/** What one try to send did. A refused report is dropped; what it cost stays spent. */
export interface Sent {
  sent: number;
  waiting: number;
  refused: { id: string; status: number }[];
}

/** Where the ledger, the queue and the secret are kept. */
export interface Store {
  /** Change the state while nobody else does, and resolve when it is kept. If `change` throws, keep the old state. */
  update<T>(change: (state: object) => T | Promise<T>): Promise<T>;
  /** Run `work` while no other tab runs its own. */
  alone<T>(work: () => Promise<T>): Promise<T>;
}

export interface Options {
  /** Where the collector is; the page's own origin unless given. */
  url?: string;
  /** The number of the round. */
  round: number;
  /** More headers, such as { Authorization: "Bearer …" }. */
  headers?: { [name: string]: string };
  /** `browserStore()` unless given. */
  store?: Store;
  /**
   * Whether an unchanged record gives the identical report at no further cost. Once the budget is spent, each question
   * repeats the answer of the row that it paid for last, whatever the value is.
   */
  permanent?: boolean;
  /** The largest sum of ε over all surveys of the store: 16 unless given. */
  limit?: number;
  /** How many reports' ε may be spent on this survey, under this name or another: 1 unless given. */
  reports?: number;
  /** Both limits hold for any so many consecutive days; for ever unless given. */
  every?: number;
}

/** A proven survey: the document's own fields, and what follows from them. */
export interface Survey {
  name: string;
  epsilon: number;
  /** How many questions each person answers. */
  m: number;
  fingerprint: string;
  /** The fingerprint without the name: budgets are kept by it. */
  series: string;
  dimensions: { name: string; type: string; [field: string]: unknown }[];
  questions: object[];
}

export class Client {
  private constructor();
  /** Prove the survey (text or object) and open the ledger. Rejects if the document is not what it says. */
  static open(document: string | object, options: Options): Promise<Client>;
  readonly survey: Survey;
  /** The report that `answer` would send for this record now; the same one however often. Costs nothing, sends nothing. */
  preview(record: Record): Promise<Report>;
  /**
   * Pay for a report, keep it in the queue, and begin to send. Resolves when ledger and queue are on the disk.
   * Rejects with an error named BudgetExceeded or OptedOut; then nothing is spent and nothing is sent.
   */
  answer(record: Record): Promise<Item>;
  /** Send what waits. What fails is tried again by itself, later and later, and when the browser is online again. */
  flush(): Promise<Sent>;
  /** Out: nothing is sent any more by this store, and what waits is dropped. `optOut(false)` takes it back. */
  optOut(out?: boolean): Promise<void>;
  status(): Promise<Status>;
}

/** IndexedDB under Web Locks: all tabs of an origin share it. Needs a secure context (https or localhost). */
export function browserStore(name?: string): Store;

/** Read a document and prove all that protects the person who answers. */
export function readSurvey(document: string | object): Promise<Survey>;

/** The next n bytes. */
export type Source = (n: number) => ArrayLike<number>;

/** For tests: fresh answers from given random bytes. */
export function fresh(survey: Survey, record: Record, source: Source): number[][];
/** For tests: permanent answers, and the marks of the rows that must be paid for; `known` is in order of payment. */
export function permanent(
  survey: Survey,
  record: Record,
  key: CryptoKey,
  known: string[],
  affordable: number,
): Promise<[number[][], string[]]>;
/** For tests: what `work` makes of the fixed bytes of a label. */
export function fixed<T>(
  key: CryptoKey,
  series: string,
  use: number,
  a: number,
  b: number,
  work: (source: Source) => T,
): Promise<T>;
/** For tests: a uniform number below n. */
export function below(source: Source, n: number | bigint): number | bigint;
