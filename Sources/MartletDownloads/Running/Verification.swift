import MartletCore
import MartletStreams
import Synchronization

/// A file that does not match its checksum.
struct ChecksumMismatch: Error {
    /// Both hashes as text.
    let words: String
    let error: HTTPError
}

extension DownloadRun {
    /// Compares a file with checksums, 4 MiB between two checks for cancellation.
    /// - Throws: ``ChecksumMismatch``; an `HTTPError` of the file; `CancellationError`.
    func verify(_ file: OpenFile, total: UInt64, _ wanted: [Checksum]) async throws {
        job.status.become(.verifying)
        job.status.events.add(.verifying)
        let files = files
        let hashes = MultiDigest(wanted.map(\.algorithm))
        var offset: UInt64 = 0
        while offset < total {
            try Task.checkCancellation()
            let (from, count) = (offset, Int(min(4 << 20, total - offset)))
            let read: Int
            do throws(StorageError) {
                read = try await BlockingThreadPool.shared.run { () throws(StorageError) in
                    let bytes = try files.read(file, count: count, at: from)
                    hashes.add(bytes)
                    return bytes.count
                }
            } catch { throw failure(error) }
            guard read == count else {
                throw HTTPError(
                    .fileFailed, phase: .processingResponse,
                    message: "\(file.path): \(offset + UInt64(read)) bytes are there, instead of \(total)",
                    method: .get, url: url)
            }
            offset += UInt64(count)
        }
        for (sum, checksum) in zip(try hashes.finish(), wanted) where sum != checksum.bytes {
            let came = Checksum(checksum.algorithm, sum)?.description ?? ""
            let words = "the hash is \(came) instead of \(checksum)"
            let error = HTTPError(
                .checksumMismatch, phase: .processingResponse, message: "\(words); the received bytes are discarded",
                wasSent: true, method: .get, url: url)
            throw ChecksumMismatch(words: words, error: error)
        }
    }

    /// The error of a file without a checksum that requires one.
    var missingDigest: ChecksumMismatch {
        let words = "the server sent no digest of the file, but one is required"
        return ChecksumMismatch(
            words: words,
            error: HTTPError(
                .checksumMismatch, phase: .processingResponse, message: "\(words); the received bytes are discarded",
                wasSent: true, method: .get, url: url))
    }

    /// Returns an existing file as the result, after it was compared with the checksum of the options.
    /// - Parameter fileExistsError: The error of the run, which found the file.
    /// - Throws: That error with the code `.checksumMismatch` if the file differs; as ``verify(_:total:_:)`` otherwise.
    func verifyExisting(_ present: DownloadResult, after fileExistsError: HTTPError) async throws -> DownloadResult {
        guard let checksum = options.checksum else { return present }
        let (files, path) = (files, present.path.string)
        do {
            let file = try await BlockingThreadPool.shared.run { () throws(StorageError) in
                try files.open(path, for: .reading)
            }
            try await verify(file, total: present.byteCount, [checksum])
        } catch let error as StorageError { throw failure(error) } catch let mismatch as ChecksumMismatch {
            var error = fileExistsError
            error.code = .checksumMismatch
            error.message = "\(path): \(mismatch.words); remove the file, or use collision: .overwrite"
            throw error
        }
        var result = present
        result.verified = [checksum]
        return result
    }
}

/// Several hashes of the same bytes.
final class MultiDigest: Sendable {
    /// The digests, used by one worker at a time; an error if OpenSSL lacks an algorithm.
    private let digests: Mutex<Result<[MessageDigest], MessageDigestError>>

    init(_ algorithms: [DigestSink.Algorithm]) {
        digests = Mutex(
            Result { () throws(MessageDigestError) in
                try algorithms.map { algorithm throws(MessageDigestError) in try MessageDigest(algorithm.digest) }
            })
    }

    func add(_ bytes: [UInt8]) {
        digests.withLock { digests in for digest in (try? digests.get()) ?? [] { digest.update(bytes.span) } }
    }

    /// Returns the hashes in the order of their algorithms.
    /// - Throws: An `HTTPError` if OpenSSL does not compute one of them.
    func finish() throws(HTTPError) -> [[UInt8]] {
        do throws(MessageDigestError) {
            return try digests.withLock { digests throws(MessageDigestError) in
                try digests.get().map { digest throws(MessageDigestError) in try digest.finish() }
            }
        } catch {
            throw HTTPError(.systemFailed, phase: .processingResponse, message: error.description, underlying: error)
        }
    }
}

extension BlockingThreadPool {
    /// Threads for syncs: concurrent ones cost hardly more than one, and lookups and writes must not wait for them.
    static let disk = BlockingThreadPool(threadLimit: 8)
}
