import Foundation
import Testing

/// A reply of `martlet batch`, with the fields that tests check.
struct BatchReply {
    let members: [String: Any]

    var number: Int? { members["seq"] as? Int }
    var isOK: Bool? { members["ok"] as? Bool }
    var status: Int? { members["status"] as? Int }
    var error: String? { members["error"] as? String }
    var body: String? { members["body"] as? String }
    var source: String? { members["source"] as? String }
    var message: String { members["message"] as? String ?? "" }
}

extension Program {
    /// Runs `martlet batch` with request lines, and returns the replies in the order of the requests.
    static func batch(
        _ lines: [String], _ options: String..., in directory: TemporaryDirectory? = nil,
        while body: (RunningProgram) async throws -> Void = { _ in }
    ) async throws -> [BatchReply] {
        let run = try await Program.run(
            ["batch", "--connect-timeout", "300"] + options,
            input: Array((lines.joined(separator: "\n") + "\n").utf8), in: directory, while: body)
        #expect(run.status == 0 && run.errors.isEmpty, "\(run.errors)")
        return try run.objects.map(BatchReply.init)
    }
}
