/// The path of a route: literal segments, `{name}` for any one segment, `{name...}` for the rest of the path.
struct RoutePattern: Sendable {
    private enum Segment: Sendable {
        case literal(Substring)
        case parameter(String)
        case rest(String)
    }

    private let segments: [Segment]

    init(_ text: String) {
        segments = RoutePattern.split(text).map { part in
            guard part.hasPrefix("{"), part.hasSuffix("}") else { return .literal(part) }
            let name = part.dropFirst().dropLast()
            return name.hasSuffix("...") ? .rest(String(name.dropLast(3))) : .parameter(String(name))
        }
    }

    private static func split(_ path: String) -> [Substring] {
        path.drop { $0 == "/" }.split(separator: "/", omittingEmptySubsequences: false)
    }

    /// What the placeholders stand for in a path, decoded (the rest of a path: as sent); `nil` when it does
    /// not match.
    func match(_ path: String) -> [String: String]? {
        let parts = RoutePattern.split(path)
        var parameters: [String: String] = [:]
        for (index, segment) in segments.enumerated() {
            if case .rest(let name) = segment {
                parameters[name] = parts.dropFirst(index).joined(separator: "/")
                return parameters
            }
            guard index < parts.count else { return nil }
            switch segment {
            case .literal(let text):
                guard parts[index] == text else { return nil }
            case .parameter(let name):
                guard !parts[index].isEmpty else { return nil }
                parameters[name] = RequestTarget.decoded(parts[index])
            case .rest: break
            }
        }
        return parts.count == segments.count ? parameters : nil
    }
}
