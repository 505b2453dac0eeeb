import Martlet

/// The JSON output about downloads: an object per line.
enum DownloadJSON {
    static let help = """


        PROGRESS, on standard error:
          auto    bar on a terminal, plain otherwise
          bar     a line for each running file and one for all; plain without a terminal
          plain   lines for events, and every 9 s for the progress of each file
          json    JSON objects, one per line. Each has "event". All but "warning", "progress" and "ended" have "id" (the
                  number of the file, from 1), "name" and "url". These events are always printed:
                    started    resumed: bytes of earlier runs
                    restarted  reason: changed, rangesRejected, notResumable, overlapDiffers or otherURL
                    retrying   code, message, delay in seconds, failures: consecutive ones
                    urlUsed    source: the URL of several from which bytes arrive for the first time
                    urlFailed  source, code, message: another URL is used
                    verifying  all bytes have been received
                    finished   path, bytes, resumed, received, verified: checksums
                    failed     code, message, exit: the exit code, kept: bytes on disk
                    paused     kept
                    warning    message: a problem that ends no download, for example of a queue
                  "progress" is sent twice a second: bytes, total (null: not known), rate in bytes per second, left in
                  seconds (null: not known), stalled in seconds, numbers of finished, failed and all files; "downloads"
                  lists the running ones: id, name, bytes, total, resumed, rate, left, stalled, connections, and state:
                  starting, receiving, waiting or verifying. The last line is "ended": ok, exit, files, finished,
                  failed, received.
          none    only errors; with -s no errors either

        LISTS (-i): one URL per line, each followed by indented lines with its own options:
          https://example.com/disk.img
            out=disk-1.img
            checksum=sha256=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
            mirror=https://mirror.example.com/disk.img
            header=X-Mirror: 2

        METALINK (RFC 5854): the files of a document get its names, in the directory of --dir. A word that ends in .meta4
        and has no scheme is a document, and so is a downloaded file whose type is application/metalink4+xml or whose URL
        ends in .meta4; it stays on disk. Without --state its files are then downloaded, too, without credentials.

        QUEUES (--state DIR): the directory stores the downloads. Each run adds those of the command line and continues
        all of them, including failed ones; a run without URLs continues the stored ones. Only one program at a time can
        use a directory. A finished download is removed from the queue after it was reported. Each download keeps its own
        options, except for credentials and the fields Authorization, Proxy-Authorization and Cookie, which are never
        stored: a run with URLs uses its own for these URLs; a run without URLs uses its own, and all fields of -H, for
        all downloads. The limits, proxies and TLS options of each run apply to all downloads.

        EXIT CODES: those of get, and 33: the server sent another range; 100: a checksum does not match; 101: the file
        changed repeatedly; 102: the download cannot be resumed; 105: the disk is full; 106: another download writes the
        file, or another program uses the directory of --state; 130, 143: SIGINT, SIGTERM, received bytes are kept. If
        several downloads fail, the first URL counts.
        """

    struct Subject: Hashable, Sendable {
        /// The number of the file, from 1.
        var id: Int
        var name: String
        var url: String
    }

    /// The line of an event; `nil` for events that end a download, which the line of its outcome reports.
    static func line(_ event: DownloadEvent, _ subject: Subject) -> String? {
        switch event {
        case .started(let resumed): line("started", subject, ["resumed": resumed])
        case .restarted(let reason): line("restarted", subject, ["reason": reason.rawValue])
        case .retrying(let error, let delay, let failures):
            line(
                "retrying", subject,
                ["code": error.code.rawValue, "message": error.message, "delay": delay, "failures": failures])
        case .verifying: line("verifying", subject)
        case .urlUsed(let url): line("urlUsed", subject, ["source": url.redacted])
        case .urlFailed(let url, let error):
            line(
                "urlFailed", subject,
                ["source": url.redacted, "code": error.code.rawValue, "message": error.message])
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

    static func warning(_ message: String) -> String {
        (["event": "warning", "message": message] as JSONMembers).jsonLine
    }

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
        if case .waiting = phase { "waiting" } else { "\(phase)" }
    }
}

enum DownloadOutcome: Sendable {
    case finished(DownloadResult)
    case failed(HTTPError)
    /// Its timeout (`-m`) expired; the received bytes are retained.
    case outOfTime
    /// It was stopped, and the received bytes are retained.
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
