import Dispatch
import Glibc
import Martlet
import MartletTesting

/// A download in a separate process: this program with the words `serve download`.
struct SoakDownload: Sendable {
    let url: String
    let path: String
    let segments: Int
    let bytesPerSecond: Int

    init(url: String, path: String, segments: Int, bytesPerSecond: Int) {
        self.url = url
        self.path = path
        self.segments = segments
        self.bytesPerSecond = bytesPerSecond
    }

    /// Parses the words that ``runAsProcess(killAfter:)`` writes.
    init?(_ words: [String]) {
        guard words.count == 4, let segments = Int(words[2]), let rate = Int(words[3]) else { return nil }
        self.init(url: words[0], path: words[1], segments: segments, bytesPerSecond: rate)
    }

    /// Runs the download to its end.
    func run() async throws {
        let options = DownloadOptions(
            segments: segments, checkpointInterval: .milliseconds(200),
            bandwidth: .bytesPerSecond(bytesPerSecond))
        _ = try await HTTPSession().download(url, to: FilePath(path), options: options)
    }

    /// Runs the download as a separate process, and kills it `delay` microseconds after its start.
    /// - Returns: The exit status; `nil` if the process was killed.
    func runAsProcess(killAfter delay: UInt32?) async throws -> Int32? {
        let words = [
            CommandLine.arguments[0], "serve", "download", url, path, "\(segments)", "\(bytesPerSecond)",
        ]
        return try await withCheckedThrowingContinuation { continuation in
            // Waiting for the process blocks.
            DispatchQueue.global().async {
                continuation.resume(
                    with: Result {
                        let process = try Peer.spawn(words, input: STDERR_FILENO, output: STDERR_FILENO)
                        if let delay {
                            usleep(delay)
                            kill(process, SIGKILL)
                        }
                        var status: Int32 = 0
                        while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
                        return status & 0x7F == 0 ? (status >> 8) & 0xFF : nil
                    })
            }
        }
    }

    /// Returns the number of bytes that the origin has passed to its kernel.
    static func sent(_ peer: Peer, _ control: HTTPSession) async throws -> Int {
        let text = try await control.text(try peer.controlURL("/counts"))
        for line in text.split(separator: "\n") where line.hasPrefix("sent ") {
            if let count = Int(line.dropFirst(5)) { return count }
        }
        throw SoakFailure("the peer does not report its sent bytes: \(text)")
    }

    /// Returns whether a file consists of exactly `count` bytes of the pattern.
    static func isPattern(_ path: String, _ count: UInt64) throws -> Bool {
        let file = try FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec)
        return try file.closeAfter {
            var offset: UInt64 = 0
            var piece = [UInt8](repeating: 0, count: 1 << 20)
            while true {
                let read = unsafe try piece.withUnsafeMutableBytes { unsafe try file.read(into: $0) }
                if read == 0 { return offset == count }
                guard TestPattern.firstMismatch(in: Array(piece.prefix(read)), at: offset) == nil else {
                    return false
                }
                offset += UInt64(read)
            }
        }
    }
}
