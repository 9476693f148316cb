/**
 * A record: values by the names of the survey's dimensions. Other names are refused. A missing or unusable value is
 * replaced by the default that the survey declares; without a default, and if the dimension is not optional, the record
 * is refused.
 */
export type Record = { [name: string]: unknown };

/** What is sent: m answers, each with the index of the question and its fields. */
export interface Report {
  format: "hdr4me-report";
  version: 1;
  survey: string;
  answers: number[][];
}

/** A report in the queue. `id` is its Idempotency-Key, 32 hexadecimal digits, created with the report. */
export interface Item {
  id: string;
  url: string;
  report: Report;
}

/** The state of the ledger for this survey. */
export interface Status {
  /** The number of further reports that the budget allows; a fraction for memoized responses; negative if a limit was lowered. */
  left: number;
  /** Reports that are charged and not delivered yet. */
  waiting: number;
  /** Reports that were delivered. Anyone who has the id can delete the report: DELETE url with {"id": id}. */
  sent: Outcome[];
  /** Reports that the collector refused, for example with 409 because the round is closed. Their cost stays spent. */
  refused: Outcome[];
  out?: boolean;
}

/** The collector's answer to a report. */
export interface Outcome {
  id: string;
  url: string;
  /** The HTTP status. */
  status: number;
}

/** The result of one attempt to send: the numbers of delivered and of waiting reports, and all refusals of the store. */
export interface Sent {
  sent: number;
  waiting: number;
  refused: Outcome[];
}

/** The storage of the ledger, the queue and the secret. */
export interface Store {
  /** Change the state exclusively, and resolve when it is on the disk. If `change` throws, the state stays unchanged. */
  update<T>(change: (state: object) => T | Promise<T>): Promise<T>;
    /** Run `work` while no other tab runs such work. */
  alone<T>(work: () => Promise<T>): Promise<T>;
}

export interface Options {
  /** The address of the collector; by default the origin of the page. */
  url?: string;
  /** The number of the round. */
  round: number;
  /** Additional headers, such as { Authorization: "Bearer …" }. */
  headers?: { [name: string]: string };
  /** By default `browserStore()`, which needs a browser or a service worker; Node needs a store. */
  store?: Store;
  /**
   * Memoized responses: an unchanged record gives the identical report at no further cost. Once the budget is spent,
   * each question repeats the response to the row that it paid for last, whatever the value is. Questions with more than
   * 65,536 inputs do not support them: `preview` and `answer` reject.
   */
  memoized?: boolean;
  /** The limit of the sum of ε over all surveys of the store; by default 16. */
  limit?: number;
  /** How many times the survey's ε may be spent on this survey, or on surveys that differ only in name; by default 1. */
  reports?: number;
    /** A period in days: both limits hold for any period of this length. By default the budget never renews. */
  every?: number;
}

/** A proven survey: the fields of the document, and values derived from them. */
export interface Survey {
  name: string;
  epsilon: number;
  /** The number of questions that each person answers. */
  m: number;
  fingerprint: string;
  /** The fingerprint without the name, by which budgets are counted. */
  series: string;
  dimensions: { name: string; type: string; [field: string]: unknown }[];
  questions: object[];
}

export class Client {
  private constructor();
  /** Prove the survey (text or object) and open the ledger. Rejects with FormatError if it is invalid or not proven, with Unsupported for dates, times and vectors. */
  static open(document: string | object, options: Options): Promise<Client>;
  readonly survey: Survey;
  /** The report that `answer` would send for this record now; repeated calls return the same report. Costs nothing. */
  preview(record: Record): Promise<Report>;
  /**
   * Charge a report, store it in the queue, and try to send it. Ledger and queue are on the disk before anything is
   * sent. Resolves when the report is delivered, or waits for the network. Rejects with an error named InvalidInput,
   * BudgetExceeded or OptedOut; then nothing is charged and nothing is sent. Rejects with an error named Refused if the
   * collector refused the report; its cost stays spent, and `status().refused` has the refusal.
   */
  answer(record: Record): Promise<Item>;
  /** Send the waiting reports. Failed reports are sent again after increasing delays, and when the browser is online again. */
  flush(): Promise<Sent>;
  /** Send nothing more from this store, and drop waiting reports. `optOut(false)` reverses this. */
  optOut(out?: boolean): Promise<void>;
  status(): Promise<Status>;
}

/** IndexedDB under Web Locks: all tabs of an origin share it. Needs a secure context (https or localhost). */
export function browserStore(name?: string): Store;

/** Parse a survey document and prove its privacy. */
export function readSurvey(document: string | object): Promise<Survey>;

/** The next n bytes. */
export type Source = (n: number) => ArrayLike<number>;

/** For tests: fresh answers from given random bytes. */
export function fresh(survey: Survey, record: Record, source: Source): Promise<number[][]>;
/** For tests: memoized responses, and the marks of the rows to pay for; `known` is in order of payment. */
export function memoized(
  survey: Survey,
  record: Record,
  key: CryptoKey,
  known: string[],
  affordable: number,
): Promise<[number[][], string[]]>;
/** For tests: the result of `work` on the pseudorandom bytes of a label. */
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
