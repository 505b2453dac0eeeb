import Martlet

/// What is said of downloads to programs: a JSON object a line.
enum DownloadJSON {
    /// What the lines hold, for the help.
    static let help = """


        PROGRESS, on standard error:
          auto    bar on a terminal, plain elsewhere
          bar     a line for each file that runs, and one for all; plain where there is no terminal
          plain   lines: what happens, and every 9 s how far each file is
          json    a JSON object a line. Each has "event". All but "warning", "progress" and "ended" have "id", the
                  number of the file from 1, "name" and "url", and none of them is left out:
                    started    resumed: bytes that were there
                    restarted  reason: changed, rangesRefused, notResumable or overlapDiffers
                    retrying   code, message, delay in seconds, failures in a row
                    verifying  all bytes are there
                    finished   path, bytes, resumed, received, verified: checksums
                    failed     code, message, exit: the exit code for it, kept: bytes that are kept
                    paused     kept
                    warning    message: what is wrong and ends no download, as with a queue
                  Twice a second "progress": bytes, total (null: not known), rate in bytes a second, left in seconds
                  (null: not known), stalled in seconds, finished, failed and files: how many; and in "downloads" those
                  that run: id, name, bytes, total, resumed, rate, left, stalled, connections, state: starting,
                  receiving, waiting or verifying. The last line is "ended": ok, exit, files, finished, failed, received.
          none    errors alone; with -s not even those

        LISTS (-i): a URL a line; below it, indented, what is special about it:
          https://example.com/disk.img
            out=disk-1.img
            checksum=sha256=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
            header=X-Mirror: 2

        QUEUES (--state DIR): downloads belong to the directory and not to the program. Those of the command line are added
        to what is there, and all of it is done; stopped, killed or started anew, also without URLs, it goes on where it was,
        and what has failed is tried again. One program at a time has a directory. What is complete is forgotten once it
        was told. Each download keeps its own options, but for names, passwords, tokens and the fields Authorization,
        Proxy-Authorization and Cookie, which are never written there: those of a command line that names URLs are for
        these, and those of one that names none for all, as are its other fields (-H). How many files come at once and how
        fast, proxies and TLS are as each command line says.

        EXIT CODES: those of get, and 33: the server answers with another part than was asked for; 100: a checksum does
        not match; 101: the file changed again and again; 102: what is there cannot be gone on with; 105: the disk is
        full; 106: another download is about the same file, or another program has the directory of --state; 130: SIGINT, and what has come is kept. Of several failures
        that of the first URL counts.
        """

    /// What a line is about.
    struct Subject: Hashable, Sendable {
        /// The file's number, from 1.
        var id: Int
        /// What it is called.
        var name: String
        /// Where it is.
        var url: String
    }

    /// The line of an event; `nil` for those that the outcome has a line for.
    static func line(_ event: DownloadEvent, _ subject: Subject) -> String? {
        switch event {
        case .started(let resumed): line("started", subject, [("resumed", .number(resumed))])
        case .restarted(let reason): line("restarted", subject, [("reason", .string(reason.rawValue))])
        case .retrying(let error, let delay, let failures):
            line(
                "retrying", subject,
                [
                    ("code", .string(error.code.rawValue)), ("message", .string(error.message)),
                    ("delay", seconds(delay)), ("failures", .number(failures)),
                ])
        case .verifying: line("verifying", subject, [])
        case .finished, .failed, .paused, .cancelled: nil
        }
    }

    /// The line of what came of a download.
    static func line(_ outcome: DownloadOutcome, _ subject: Subject, kept: UInt64) -> String {
        switch outcome {
        case .finished(let result):
            return line(
                "finished", subject,
                [
                    ("path", .string(result.path.string)), ("bytes", .number(result.byteCount)),
                    ("resumed", .number(result.resumedByteCount)),
                    ("received", .number(result.receivedByteCount)),
                    ("verified", .array(result.verified.map { .string($0.description) })),
                ])
        case .failed(let error):
            return failure(outcome, subject, error.code.rawValue, error.message, error.keptByteCount ?? 0)
        case .outOfTime:
            let code = HTTPError.Code.timedOut.rawValue
            return failure(outcome, subject, code, "not complete within its time", kept)
        case .stopped: return line("paused", subject, [("kept", .number(kept))])
        }
    }

    private static func failure(
        _ outcome: DownloadOutcome, _ subject: Subject, _ code: String, _ message: String, _ kept: UInt64
    ) -> String {
        line(
            "failed", subject,
            [
                ("code", .string(code)), ("message", .string(message)),
                ("exit", .number(outcome.status?.code ?? 0)), ("kept", .number(kept)),
            ])
    }

    /// The line of how far they are.
    static func progress(_ rows: [(id: Int, row: DownloadRow)], total: DownloadTotal) -> String {
        let row = total.row
        var members: [(String, JSONValue)] = [("event", .string("progress"))]
        members += figures(row)
        members += [
            ("finished", .number(total.finishedCount)), ("failed", .number(total.failedCount)),
            ("files", .number(total.fileCount)),
            (
                "downloads",
                .array(
                    rows.map { id, row in
                        .members(
                            [("id", .number(id)), ("name", .string(row.name))] + figures(row) + [
                                ("resumed", .number(row.resumed)), ("connections", .number(row.connections)),
                                ("state", .string(state(row.phase))),
                            ])
                    })
            ),
        ]
        return JSONLine.text(.members(members))
    }

    /// The line of something that is wrong and ends no download.
    static func warning(_ message: String) -> String {
        JSONLine.text(.members([("event", .string("warning")), ("message", .string(message))]))
    }

    /// The last line.
    static func ended(_ total: DownloadTotal, received: UInt64, _ status: ExitStatus) -> String {
        JSONLine.text(
            .members([
                ("event", .string("ended")), ("ok", .bool(status == .success)),
                ("exit", .number(status.code)),
                ("files", .number(total.fileCount)), ("finished", .number(total.finishedCount)),
                ("failed", .number(total.failedCount)), ("received", .number(received)),
            ]))
    }

    private static func line(_ event: String, _ subject: Subject, _ rest: [(String, JSONValue)]) -> String {
        JSONLine.text(
            .members(
                [
                    ("event", .string(event)), ("id", .number(subject.id)), ("name", .string(subject.name)),
                    ("url", .string(subject.url)),
                ] + rest))
    }

    private static func figures(_ row: DownloadRow) -> [(String, JSONValue)] {
        [
            ("bytes", .number(row.bytes)), ("total", row.total.map { .number($0) } ?? .null),
            ("rate", .number(Int(min(row.rate, 1e15)))), ("left", row.timeLeft.map(seconds) ?? .null),
            ("stalled", seconds(row.isStalled ? row.stall : .zero)),
        ]
    }

    private static func state(_ phase: DownloadRow.Phase) -> String {
        switch phase {
        case .starting: "starting"
        case .receiving: "receiving"
        case .waiting: "waiting"
        case .verifying: "verifying"
        }
    }

    private static func seconds(_ duration: Duration) -> JSONValue {
        .number(WriteOutValue.seconds(duration).text)
    }
}

/// How the progress of downloads is shown, and what of it.
struct DownloadForm: Hashable, Sendable {
    /// The form, which is neither automatic nor one that the terminal cannot show.
    var progress: GlobalOptions.Progress
    /// Whether failures are told.
    var tellsErrors: Bool
    /// Whether each failure that passes is told, though a bar shows it.
    var tellsAll: Bool
    /// Whether more than ASCII may be used.
    var usesUnicode: Bool
    /// Whether colours may be used.
    var usesColour: Bool

    /// What the options ask for and the surroundings allow: without a terminal, or on one that cannot move its cursor,
    /// there are neither bars nor colours.
    /// - Parameter variable: The environment.
    init(_ global: GlobalOptions, isTerminal: Bool, usesUnicode: Bool, variable: (String) -> String?) {
        let canDraw = isTerminal && !["", "dumb"].contains(variable("TERM") ?? "")
        progress =
            switch global.progress {
            case _ where global.isSilent: .none
            case .auto, .bar: canDraw ? .bar : .plain
            case .plain, .json, .none: global.progress
            }
        tellsErrors = global.tellsErrors
        tellsAll = global.isVerbose
        self.usesUnicode = usesUnicode
        usesColour = canDraw && (variable("NO_COLOR") ?? "").isEmpty
    }

    /// Whether what happens is told in words.
    var tellsPeople: Bool { progress == .bar || progress == .plain }
}

/// What came of a download.
enum DownloadOutcome: Sendable {
    /// The file is there.
    case finished(DownloadResult)
    /// It failed.
    case failed(HTTPError)
    /// Its time (`-m`) is over; what has come is kept.
    case outOfTime
    /// It was stopped, and what has come is kept.
    case stopped

    /// What the program exits with for it; `nil` where it is no failure of its own.
    var status: ExitStatus? {
        switch self {
        case .finished, .stopped: nil
        case .failed(let error): DownloadOutcome.status(of: error)
        case .outOfTime: .timedOut
        }
    }

    /// The exit code of a download that failed: as of any call, but that files are written here and not read.
    static func status(of error: HTTPError) -> ExitStatus {
        error.code == .fileFailed ? .writeFailed : ExitStatus(error)
    }
}
