import SystemPackage

/// A file of options, as curl's `-K` reads it: one a line, `name value`, `name = value` or `name: value`.
enum ConfigFile {
    struct Line: Hashable, Sendable {
        /// The option as on a command line: `--name`, `-n`, or a cluster of letters.
        var word: String
        var value: String?
        /// The file and the line, for messages.
        var place: String
        /// Whether more than a comment follows the value, which ended at a blank.
        var hasRest = false
    }

    static func lines(of text: String, named name: String) throws(UsageError) -> [Line] {
        var lines: [Line] = []
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
            .enumerated()
        {
            let line = line.drop(while: isBlank)
            guard let first = line.first, first != "#" else { continue }
            let option = line.prefix { !isBlank($0) && $0 != "=" && $0 != ":" }
            let place = "\(name), line \(index + 1)"
            try check(option.contains(where: { $0 != "-" }), "\(place): no option")
            var entry = Line(word: option.hasPrefix("-") ? String(option) : "--\(option)", place: place)
            var rest = line.dropFirst(option.count).drop(while: isBlank)
            if let separator = rest.first, separator == "=" || separator == ":" {
                rest = rest.dropFirst().drop(while: isBlank)
            }
            if rest.first == "\"" {
                entry.value = try quoted(rest.dropFirst(), place)
            } else {
                let value = rest.prefix { !isBlank($0) }
                if !value.isEmpty, value.first != "#" { entry.value = String(value) }
                let behind = rest.dropFirst(value.count).drop(while: isBlank)
                entry.hasRest = entry.value != nil && !behind.isEmpty && behind.first != "#"
            }
            lines.append(entry)
        }
        return lines
    }

    private static func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" }

    private static func quoted(_ text: Substring, _ place: String) throws(UsageError) -> String {
        let escapes: [Character: Character] = ["n": "\n", "t": "\t", "r": "\r", "v": "\u{B}"]
        var value = ""
        var isEscaped = false
        for character in text {
            if isEscaped {
                value.append(escapes[character] ?? character)
                isEscaped = false
            } else if character == "\\" {
                isEscaped = true
            } else if character == "\"" {
                return value
            } else {
                value.append(character)
            }
        }
        throw UsageError("\(place): a quote is not closed")
    }
}

/// Files that options name; `-` is standard input.
enum InputFile {
    /// The contents of a file. Blocks.
    static func contents(of name: String) throws(UsageError) -> [UInt8] {
        do {
            if name == "-" { return try rest(of: .standardInput) }
            let file = try FileDescriptor.open(FilePath(name), .readOnly, options: .closeOnExec)
            defer { try? file.close() }
            return try rest(of: file)
        } catch { throw UsageError("could not read “\(name)”: \(error)", status: .readFailed) }
    }

    /// The contents of the file that a value names after `@`; `nil` for a value without `@`. Blocks.
    static func contents(behindAtOf value: String) throws(UsageError) -> [UInt8]? {
        value.begins(with: "@") ? try contents(of: value.rest(behind: value.startIndex)) : nil
    }

    private static func rest(of file: FileDescriptor) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while case let piece = try file.bytes(atMost: 256 * 1024), !piece.isEmpty { bytes += piece }
        return bytes
    }
}

extension FileDescriptor {
    /// The bytes that are available, up to a limit; empty at the end. Blocks.
    func bytes(atMost limit: Int) throws -> [UInt8] {
        try unsafe [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            count = unsafe try read(into: UnsafeMutableRawBufferPointer(buffer))
        }
    }
}
