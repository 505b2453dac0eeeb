import Foundation
import FoundationNetworking

/// Counts the bytes of a body as they are delivered, and keeps none.
final class Discarder: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    // Both are touched on the session's delegate queue alone, which runs one call at a time.
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
