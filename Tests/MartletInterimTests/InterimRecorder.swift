import Martlet
import MartletTesting
import Synchronization

/// The interim responses that a call has reported.
final class InterimRecorder: Sendable {
    private let reported = Mutex<[HTTPResponse]>([])

    var responses: [HTTPResponse] { reported.withLock { $0 } }
    var statuses: [Int] { responses.map(\.status.code) }

    /// Returns options that record each interim response, and then call a closure.
    func options(_ report: @escaping @Sendable (HTTPResponse) -> Void = { _ in }) -> RequestOptions {
        RequestOptions {
            $0.onInterimResponse = { response in
                self.reported.withLock { $0.append(response) }
                report(response)
            }
        }
    }
}

extension ScriptStep {
    /// An early hint.
    static let sendHint = ScriptStep.send("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n")
    /// A response of two bytes that keeps the connection open.
    static let sendOK = ScriptStep.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
}
