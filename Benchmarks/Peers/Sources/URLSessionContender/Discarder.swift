import Foundation
import FoundationNetworking

/// A delegate that counts the bytes of a body on delivery and discards them.
///
/// Unchecked, because its state is accessed only on the session's delegate queue, which runs one call at a time.
final class Discarder: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    private var count = 0
    private let continuation: CheckedContinuation<Int, any Error>

    init(_ continuation: CheckedContinuation<Int, any Error>) {
        self.continuation = continuation
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        count += data.count
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let error {
            continuation.resume(throwing: error)
        } else {
            continuation.resume(returning: count)
        }
    }
}
