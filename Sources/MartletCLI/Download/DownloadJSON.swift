import Martlet

/// Reports on downloads for programs: a JSON object a line.
enum DownloadJSON {
    /// The contents of the lines, for the help.
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

    /// The download that a line is about.
    struct Subject: Hashable, Sendable {
        /// The number of the file, from 1.
        var id: Int
        var name: String
        var url: String
    }

    /// The line of an event; `nil` for the events that the outcome has a line for.
    static func line(_ event: DownloadEvent, _ subject: Subject) -> String? {
        switch event {
        case .started(let resumed): line("started", subject, ["resumed": resumed])
        case .restarted(let reason): line("restarted", subject, ["reason": reason.rawValue])
        case .retrying(let error, let delay, let failures):
            line(
                "retrying", subject,
                ["code": error.code.rawValue, "message": error.message, "delay": delay, "failures": failures])
        case .verifying: line("verifying", subject)
        case .finished, .failed, .paused, .cancelled: nil
        }
    }

    static func line(_ outcome: DownloadOutcome, _ subject: Subject, kept: UInt64) -> String {
        func failure(_ code: HTTPError.Code, _ message: String, _ kept: UInt64) -> String {
            line(
                "failed", subject,
                ["code": code.rawValue, "message": message, "exit": outcome.status?.code ?? 0, "kept": kept])
        }
        switch outcome {
        case .finished(let result):
            return line(
                "finished", subject,
                [
                    "path": result.path.string, "bytes": result.byteCount, "resumed": result.resumedByteCount,
                    "received": result.receivedByteCount, "verified": result.verified.map(\.description),
                ])
        case .failed(let error): return failure(error.code, error.message, error.resumableByteCount ?? 0)
        case .outOfTime: return failure(.timedOut, "not complete within its time", kept)
        case .stopped: return line("paused", subject, ["kept": kept])
        }
    }

    static func progress(_ rows: [(id: Int, row: DownloadRow)], total: DownloadTotal) -> String {
        let downloads = rows.map { id, row -> JSONMembers in
            ["id": id, "name": row.name] + figures(row) + [
                "resumed": row.resumed, "connections": row.connections, "state": state(row.phase),
            ]
        }
        let members: JSONMembers =
            ["event": "progress"] + figures(total.row) + [
                "finished": total.finishedCount, "failed": total.failedCount, "files": total.fileCount,
                "downloads": downloads,
            ]
        return members.jsonLine
    }

    /// The line of a fault that ends no download.
    static func warning(_ message: String) -> String {
        (["event": "warning", "message": message] as JSONMembers).jsonLine
    }

    /// The last line.
    static func ended(_ total: DownloadTotal, received: UInt64, _ status: ExitStatus) -> String {
        let members: JSONMembers = [
            "event": "ended", "ok": status == .success, "exit": status.code, "files": total.fileCount,
            "finished": total.finishedCount, "failed": total.failedCount, "received": received,
        ]
        return members.jsonLine
    }

    private static func line(_ event: String, _ subject: Subject, _ rest: JSONMembers = [:]) -> String {
        (["event": event, "id": subject.id, "name": subject.name, "url": subject.url] + rest).jsonLine
    }

    private static func figures(_ row: DownloadRow) -> JSONMembers {
        [
            "bytes": row.bytes, "total": row.total, "rate": Int(min(row.rate, 1e15)), "left": row.timeLeft,
            "stalled": row.isStalled ? row.stall : .zero,
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
}

/// The form in which the progress of downloads is shown.
struct ProgressStyle: Hashable, Sendable {
    /// The form: not automatic, and one that the terminal can show.
    let progress: GlobalOptions.Progress
    let tellsErrors: Bool
    /// Whether each passing failure is reported, although a bar shows it.
    let tellsAll: Bool
    /// Whether more than ASCII may be used.
    let usesUnicode: Bool
    let usesColour: Bool

    /// The form of the options and the environment: without a terminal, or on one that cannot move its cursor, there are
    /// neither bars nor colours.
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

    /// Whether events are reported in words.
    var tellsPeople: Bool { progress == .bar || progress == .plain }
}

/// The outcome of a download.
enum DownloadOutcome: Sendable {
    case finished(DownloadResult)
    case failed(HTTPError)
    /// Its time (`-m`) expired; the received bytes are kept.
    case outOfTime
    /// It was stopped, and the received bytes are kept.
    case stopped

    /// The exit code; `nil` if the download itself did not fail.
    var status: ExitStatus? {
        switch self {
        case .finished, .stopped: nil
        case .failed(let error): DownloadOutcome.status(of: error)
        case .outOfTime: .timedOut
        }
    }

    /// The exit code of a failed download: that of any call, except that its files are written and not read.
    static func status(of error: HTTPError) -> ExitStatus {
        error.code == .fileFailed ? .writeFailed : ExitStatus(error)
    }
}
