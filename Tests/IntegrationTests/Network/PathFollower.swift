import Foundation

/// The output of `martlet network --json` so far, line by line.
struct PathFollower: Sendable {
    /// One line of the output.
    struct Line: Decodable, Sendable {
        struct Interface: Decodable, Sendable {
            let name: String
            let kind: String
            let expensive: Bool
            let addresses: [String]
        }

        let status: String
        let kind: String?
        let expensive: Bool
        let interfaces: [Interface]
    }

    let child: ChildProcess

    /// The complete lines.
    var lines: [Line] {
        get throws {
            let text = child.output
            guard let end = text.lastIndex(of: "\n") else { return [] }
            return try text[..<end].split(separator: "\n").map {
                try JSONDecoder().decode(Line.self, from: Data($0.utf8))
            }
        }
    }

    /// The statuses of the paths, in order.
    var statuses: [String] {
        get throws { try lines.map(\.status) }
    }

    /// Waits for a number of lines.
    /// - Returns: The last of these.
    @discardableResult
    func line(_ count: Int) async throws -> Line {
        try await child.wait(for: "line \(count)") { try lines.count >= count }
        return try lines[count - 1]
    }

    /// Waits until the latest line matches.
    func newest(_ what: String, where isFound: (Line) -> Bool) async throws {
        try await child.wait(for: what) { try lines.last.map(isFound) ?? false }
    }
}
