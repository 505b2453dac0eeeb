import FoundationEssentials
import Glibc
import Martlet
import MartletDownloads
import SystemPackage

/// The work of a child process, with the settings from its words.
struct DownloadWork {
    let settings: [String: String]

    init(settings words: [String]) {
        var settings: [String: String] = [:]
        for word in words {
            let pair = word.split(separator: "=", maxSplits: 1)
            if pair.count == 2 { settings[String(pair[0])] = String(pair[1]) }
        }
        self.settings = settings
        if let interval = number("interrupts") { interrupt(every: interval) }
    }

    /// Interrupts system calls with a signal at an interval in microseconds.
    private func interrupt(every interval: Int) {
        var action = sigaction()
        unsafe action.__sigaction_handler.sa_handler = { _ in }
        // SA_RESTART is not set, so that calls end with EINTR.
        action.sa_flags = 0
        _ = unsafe sigaction(SIGALRM, &action, nil)
        let time = timeval(tv_sec: 0, tv_usec: interval)
        var timer = itimerval(it_interval: time, it_value: time)
        _ = unsafe setitimer(Int32(ITIMER_REAL.rawValue), &timer, nil)
    }

    private func number(_ name: String) -> Int? { settings[name].flatMap { Int($0) } }

    var options: DownloadOptions {
        var options = DownloadOptions(
            segments: number("segments") ?? 4,
            retry: DownloadRetry(
                maximumRetries: number("attempts") ?? 5, initialDelay: .milliseconds(1),
                maximumDelay: .milliseconds(5)),
            stallTimeout: .seconds(300), checkpointInterval: .milliseconds(number("checkpoint") ?? 50))
        if let collision = settings["collision"].flatMap({ DownloadOptions.Collision(rawValue: $0) }) {
            options.collision = collision
        }
        options.durability = settings["durability"].flatMap { DownloadOptions.Durability(rawValue: $0) } ?? .synced
        // Stalls are intended here: no other transfer may take over a stalled range.
        options.takeoverThreshold = .seconds(300)
        return options
    }

    var session: HTTPSession {
        var configuration = SessionConfiguration.ephemeral
        configuration.timeouts = Timeouts(
            connect: .seconds(300), head: .seconds(300), idle: .seconds(300), total: nil)
        configuration.pool.connectionsPerHost = number("connections") ?? configuration.pool.connectionsPerHost
        return HTTPSession(configuration: configuration)
    }

    /// Downloads one file; pauses once `pauseAfter` bytes are stored.
    func one(from url: String, to path: String) async {
        do {
            let download = try session.startDownload(url, to: .file(FilePath(path)), options: options)
            if let limit = number("pauseAfter") {
                for await progress in download.progress where progress.completedByteCount >= UInt64(limit) {
                    break
                }
                await download.pause()
                for await progress in download.progress {
                    say("paused completed=\(progress.completedByteCount)")
                    break
                }
                return
            }
            if let limit = number("tell") {
                for await progress in download.progress where progress.completedByteCount >= UInt64(limit) {
                    say("at \(progress.completedByteCount)")
                    // The parent waits for the file, not for the pipe, which is read at the end.
                    if let mark = settings["mark"] {
                        _ = FileManager.default.createFile(atPath: mark, contents: nil)
                    }
                    break
                }
            }
            tell(try await download.value)
        } catch {
            tell(error)
        }
        say("peak=\(peakMemory)")
    }

    /// Downloads many files concurrently.
    func many(from url: String, into directory: String, count: Int) async {
        let session = session
        let options = options
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<count {
                group.addTask {
                    do {
                        tell(
                            try await session.download(
                                "\(url)\(number)", to: FilePath("\(directory)/\(number).bin"), options: options))
                    } catch {
                        tell(error)
                    }
                }
            }
        }
    }

    func tell(_ result: DownloadResult) {
        say(
            "finished bytes=\(result.byteCount) resumed=\(result.resumedByteCount) "
                + "received=\(result.receivedByteCount)")
    }

    func tell(_ error: any Error) {
        guard let error = error as? HTTPError else { return say("failed other \(error)") }
        let message = error.message.replacing("\n", with: " ")
        let kept = error.resumableByteCount.map { "\($0)" } ?? "none"
        say("failed \(error.code.rawValue) kept=\(kept) \(message)")
    }

    private func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        // One call, so that lines of several tasks do not mix.
        _ = unsafe bytes.withUnsafeBytes { unsafe write(STDOUT_FILENO, $0.baseAddress, $0.count) }
    }

    /// The peak of the resident memory, in KiB.
    private var peakMemory: Int {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
    }
}
