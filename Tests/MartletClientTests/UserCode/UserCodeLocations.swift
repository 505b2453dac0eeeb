import Foundation

/// The parts of the public API that accept user code, found in the sources: public functions, initializers, properties
/// and type aliases with a closure, an asynchronous sequence or a handler of another package, and the requirements of
/// public protocols.
enum UserCodeLocations {
    /// Returns the places in all library targets, as `Type.member`.
    static func inSources() throws -> Set<String> {
        // This file is four levels below the root of the package.
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        var places: Set<String> = []
        let sources = root.appendingPathComponent("Sources")
        for target in try FileManager.default.contentsOfDirectory(atPath: sources.path)
        where !isLeftOut(target) {
            let directory = sources.appendingPathComponent(target)
            let paths = FileManager.default.enumerator(atPath: directory.path)
            for path in (paths?.allObjects ?? []).compactMap({ $0 as? String })
            where path.hasSuffix(".swift") {
                let source = try String(contentsOf: directory.appendingPathComponent(path), encoding: .utf8)
                places.formUnion(UserCodeLocations.places(in: source))
            }
        }
        return places
    }

    /// Whether a target is excluded: code of `MartletTesting`, the demo and the command-line tool does not run in calls
    /// of users.
    private static func isLeftOut(_ target: String) -> Bool {
        ["MartletTesting", "MartletDemo", "MartletCLI"].contains(target)
    }

    /// Returns the places in one file's source.
    static func places(in source: String) -> Set<String> {
        var places: Set<String> = []
        var scopes: [Scope] = []
        /// The indentation of each open `#if`.
        var conditions: [Int] = []
        let lines = source.components(separatedBy: "\n")
        for (index, line) in lines.enumerated() {
            let text = line.drop { $0 == " " }
            let indentation = line.count - text.count
            if text.isEmpty || text.hasPrefix("//") { continue }
            if text.hasPrefix("#if") { conditions.append(indentation) }
            if text.hasPrefix("#endif") { _ = conditions.popLast() }
            if text.hasPrefix("#") { continue }
            scopes.removeAll { $0.indentation >= indentation }
            // Regular expressions are slow in debug builds, so most lines are skipped without one.
            if text.hasSuffix("{"), scopeWords.contains(where: text.contains),
                let scope = Scope(String(text), indentation: indentation)
            {
                scopes.append(scope)
                continue
            }
            guard let scope = scopes.last else { continue }
            let depth = conditions.count { $0 > scope.indentation } + 1
            guard indentation == scope.indentation + 4 * depth else { continue }
            let isPublic = text.contains("public ") || scope.isPublicExtension
            guard isPublic || scope.isPublicProtocol, let name = memberName(in: String(text)) else {
                continue
            }
            if scope.isPublicProtocol || takesCode(declaration(at: index, of: lines)) {
                places.insert("\(scope.name).\(name)")
            }
        }
        return places
    }

    private static let scopeWords = ["extension ", "struct ", "class ", "actor ", "enum ", "protocol "]
    /// Markers of user code in a declaration without a closure.
    private static let codeSigns = [
        ": AsyncSequence", "any AsyncSequence", "Logger(", ": Logger", "MetricsFactory", "Tracer)",
    ]

    /// A type, protocol or extension with the following members.
    private struct Scope {
        var indentation: Int
        var name: String
        var isPublicProtocol: Bool
        var isPublicExtension: Bool

        init?(_ text: String, indentation: Int) {
            let words = text.split(separator: " ").map(String.init)
            let kinds: Set = ["extension", "struct", "class", "actor", "enum", "protocol"]
            guard let place = words.firstIndex(where: kinds.contains), place + 1 < words.count,
                words[..<place].allSatisfy({ $0.hasPrefix("@") || $0.allSatisfy(\.isLetter) })
            else { return nil }
            let name = words[place + 1].prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "." }
            guard name.first?.isUppercase == true else { return nil }
            let isPublic = words[..<place].contains("public")
            self.indentation = indentation
            self.name = String(name)
            isPublicProtocol = isPublic && words[place] == "protocol"
            isPublicExtension = isPublic && words[place] == "extension"
        }
    }

    private static func memberName(in text: String) -> String? {
        let words = text.split { !($0.isLetter || $0.isNumber || $0 == "_" || $0 == "@") }.map(String.init)
        guard
            let place = words.firstIndex(where: {
                ["func", "var", "let", "typealias", "init"].contains($0)
            })
        else { return nil }
        if words[place] == "init" { return "init" }
        return place + 1 < words.count ? words[place + 1] : nil
    }

    /// Returns a declaration up to its body, over all its lines.
    private static func declaration(at index: Int, of lines: [String]) -> String {
        var text = ""
        for line in lines[index...] {
            text += line.trimmingCharacters(in: .whitespaces) + " "
            let opened = text.count { $0 == "(" } - text.count { $0 == ")" }
            if opened <= 0, !text.hasSuffix("-> "), !text.hasSuffix("= ") { break }
        }
        return text
    }

    /// Whether a function has code among its parameters, or a property or an alias has a code type.
    private static func takesCode(_ declaration: String) -> Bool {
        let signature = String(declaration.prefix { $0 != "{" })
        if codeSigns.contains(where: signature.contains) { return true }
        guard signature.contains("->") else { return false }
        let words = signature.split(separator: " ")
        if !words.contains("func"), words.contains(where: { ["var", "let", "typealias"].contains($0) }) {
            return true
        }
        var depth = 0
        var previous: Character = " "
        for character in signature {
            switch character {
            case "(": depth += 1
            case ")": depth -= 1
            case ">" where previous == "-" && depth > 0: return true
            default: break
            }
            previous = character
        }
        return false
    }
}
