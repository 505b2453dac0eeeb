import MartletClient
import MartletTransport
import Synchronization

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
