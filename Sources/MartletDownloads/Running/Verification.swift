import MartletCore
import MartletStreams
import MartletStorage
import MartletTransport
import Synchronization

/// A file that does not come to its checksum.
struct ChecksumMismatch: Error {
    let error: HTTPError
}

/// Compares a file with checksums.
struct Verification: Sendable {
    /// How much is read at a time, between two looks at whether it is still wanted: 4 MiB.
    private static let pieceByteCount = 4 << 20

    private let wanted: [Checksum]
    private let origin: String?

    init(_ wanted: [Checksum], origin: String?) {
        self.wanted = wanted
        self.origin = origin
    }

    /// Reads the file to its end.
    /// - Throws: ``ChecksumMismatch``; an `HTTPError` of the file; `CancellationError`.
    func check(_ file: OpenFile, total: UInt64, files: any FileSystem) async throws {
        let hashes = Hashes(wanted.map(\.algorithm))
        var offset: UInt64 = 0
        while offset < total {
            try Task.checkCancellation()
            let (from, count) = (offset, Int(min(UInt64(Verification.pieceByteCount), total - offset)))
            let read: Int
            do throws(StorageError) {
                read = try await BlockingWorkers.shared.run { () throws(StorageError) in
                    let bytes = try files.read(file, count: count, at: from)
                    hashes.add(bytes)
                    return bytes.count
                }
            } catch {
                throw HTTPError(storage: error, origin: origin)
            }
            guard read == count else {
                throw HTTPError(
                    .fileFailed, phase: .evaluating,
                    message: "\(file.path): \(offset + UInt64(read)) bytes are there, and \(total) should be",
                    origin: origin)
            }
            offset += UInt64(count)
        }
        let sums = try hashes.finish()
        for (sum, checksum) in zip(sums, wanted) where sum != checksum.bytes {
            let came = Checksum(checksum.algorithm, sum)?.description ?? ""
            throw ChecksumMismatch(
                error: HTTPError(
                    .checksumMismatch, phase: .evaluating,
                    message:
                        "the file comes to \(came), and \(checksum) was asked for; nothing of it is kept",
                    wasSent: true, origin: origin))
        }
    }
}

/// Several hashes of the same bytes.
final class Hashes: Sendable {
    private struct Work {
        var digests: [MessageDigest] = []
        var failure: MessageDigestError?
    }

    /// Guards the above: one worker at a time.
    private let work: Mutex<Work>

    init(_ algorithms: [DigestSink.Algorithm]) {
        var made = Work()
        do throws(MessageDigestError) {
            for algorithm in algorithms { made.digests.append(try MessageDigest(algorithm.digest)) }
        } catch {
            made.failure = error
        }
        work = Mutex(made)
    }

    /// Adds bytes.
    func add(_ bytes: [UInt8]) {
        work.withLock { work in
            for digest in work.digests { digest.update(bytes.span) }
        }
    }

    /// The hashes, in the order of their algorithms.
    /// - Throws: An `HTTPError` where this machine's OpenSSL does not compute one of them.
    func finish() throws(HTTPError) -> [[UInt8]] {
        let result = work.withLock { work -> Result<[[UInt8]], MessageDigestError> in
            if let failure = work.failure { return .failure(failure) }
            do throws(MessageDigestError) {
                var sums: [[UInt8]] = []
                for digest in work.digests { sums.append(try digest.finish()) }
                return .success(sums)
            } catch {
                return .failure(error)
            }
        }
        do throws(MessageDigestError) {
            return try result.get()
        } catch {
            throw HTTPError(
                .systemFailed, phase: .evaluating, message: error.description, underlying: error)
        }
    }
}

extension BlockingWorkers {
    /// Threads that wait for the disk: syncs, and what follows them. Syncs that run at the same time cost a file system hardly
    /// more than one, and who looks up a name or writes a block is not to stand in line behind them.
    static let disk = BlockingWorkers(threadLimit: 8)
}
