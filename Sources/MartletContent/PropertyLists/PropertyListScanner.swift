import FoundationEssentials

/// A scanner that checks the depth, the object count and the references of a property list without recursion. It takes
/// time linear in the list's size and in the objects that a decoder visits.
///
/// Without these checks Foundation's decoder can overflow the stack or trap. The scanner accepts some lists that
/// Foundation rejects; it never counts fewer levels or objects than Foundation visits.
package enum PropertyListScanner {
    /// The maximum depth, as in Foundation's JSON decoder.
    static let depthLimit = 512
    /// The maximum number of objects that a decoder may visit.
    static let objectLimit = 1_000_000
    /// The maximum size in bytes of texts and data that several references share: 64 MiB, enough for short keys and
    /// values in all objects.
    static let sharedContentLimit = 64 << 20

    /// Checks a list in the binary, XML or OpenStep format.
    package static func check(_ bytes: [UInt8]) throws(PropertyListError) {
        if bytes.starts(with: "bplist0".utf8) {
            var scanner = try BinaryPropertyListScanner(bytes)
            try scanner.check()
        } else {
            let text = try utf8(bytes)
            let first = text.first { ![0x09, 0x0A, 0x0D, 0x20].contains($0) }
            // Foundation itself limits the depth of OpenStep lists, the texts that do not begin with `<`.
            if first == UInt8(ascii: "<") { try checkMarkup(text) }
        }
    }

    /// Returns the text in UTF-8, without its byte order mark. Without a mark Foundation decodes only UTF-8.
    private static func utf8(_ bytes: [UInt8]) throws(PropertyListError) -> ArraySlice<UInt8> {
        let marks: [([UInt8], String.Encoding)] = [
            ([0x00, 0x00, 0xFE, 0xFF], .utf32BigEndian), ([0xFE, 0xFF, 0x00, 0x00], .utf32LittleEndian),
            ([0xFF, 0xFE, 0x00, 0x00], .utf32LittleEndian), ([0xFE, 0xFF], .utf16BigEndian),
            ([0xFF, 0xFE], .utf16LittleEndian),
        ]
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { return bytes[3...] }
        guard let (mark, encoding) = marks.first(where: { bytes.starts(with: $0.0) }) else { return bytes[...] }
        guard let text = String(bytes: bytes.dropFirst(mark.count), encoding: encoding) else {
            throw PropertyListError(reason: .malformed)
        }
        return ArraySlice(text.utf8)
    }

    /// Follows the markup like Foundation's scanner: the start of the name identifies a tag, and the next `>` ends it.
    private static func checkMarkup(_ text: ArraySlice<UInt8>) throws(PropertyListError) {
        var rest = text
        var depth = 0
        var objectCount = 0
        while let start = rest.firstIndex(of: UInt8(ascii: "<")) {
            rest = rest[start...].dropFirst()
            if rest.starts(with: "!--".utf8) {
                rest = rest.dropFirst(3).after("-->")
            } else if rest.starts(with: "![CDATA[".utf8) {
                rest = rest.dropFirst(8).after("]]>")
            } else if rest.first == UInt8(ascii: "?") {
                // Foundation ends `<?>` immediately only inside a list. The scanner does so everywhere, and may count
                // too much, which is harmless.
                rest = rest.after("?>")
            } else {
                let isClosing = rest.first == UInt8(ascii: "/")
                let name = isClosing ? rest.dropFirst() : rest
                rest = rest.after(">")
                let isEmpty = text[..<rest.startIndex].dropLast().last == UInt8(ascii: "/")
                let isContainer = ["array", "dict", "plist"].contains { name.starts(with: $0.utf8) }
                if isClosing {
                    if isContainer { depth = max(0, depth - 1) }
                    continue
                }
                objectCount += 1
                guard objectCount <= objectLimit else { throw PropertyListError(reason: .tooManyObjects) }
                if isContainer, !isEmpty { depth += 1 }
                guard depth <= depthLimit else { throw PropertyListError(reason: .tooDeep) }
            }
        }
    }
}

extension ArraySlice<UInt8> {
    /// Returns the bytes after the first occurrence of a delimiter; empty if it does not occur.
    fileprivate func after(_ delimiter: String) -> ArraySlice<UInt8> {
        let wanted = Array(delimiter.utf8)
        let start = indices.first { self[$0] == wanted.first && self[$0...].starts(with: wanted) }
        return self[(start.map { $0 + wanted.count } ?? endIndex)...]
    }
}

/// The error of a property list that is rejected before it is decoded. Foundation's parsers are recursive, and follow
/// every reference of a binary property list. A list with which they would overflow the stack, or use too much memory
/// or time, is not passed to them.
public struct PropertyListError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of error. More kinds may be added: a `switch` needs a default.
    public enum Reason: String, Hashable, Sendable {
        /// Arrays and dictionaries are nested more than 512 deep.
        case tooDeep
        /// The list has more than a million objects, counting each reference to an object.
        case tooManyObjects
        /// The texts and data of a binary list, counting each reference to them, are more than 64 MiB larger than the
        /// list.
        case tooLarge
        /// An array or a dictionary of a binary list contains itself.
        case cycle
        /// A binary list's trailer, count, offset or reference points outside the list, or a text is invalid in the
        /// encoding of its byte order mark.
        case malformed
    }

    /// The kind of error.
    public let reason: Reason

    /// Creates an error of a kind.
    public init(reason: Reason) { self.reason = reason }

    /// The error, as text.
    public var description: String {
        switch reason {
        case .tooDeep: "the property list is nested more than \(PropertyListScanner.depthLimit) deep"
        case .tooManyObjects: "the property list has more than \(PropertyListScanner.objectLimit) objects"
        case .tooLarge: "the property list shares too large texts or data"
        case .cycle: "an array or a dictionary of the property list contains itself"
        case .malformed: "the property list has an invalid reference, or does not match its byte order mark"
        }
    }
}
