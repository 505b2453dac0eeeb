import FoundationEssentials
import Martlet
import MartletTesting
import Testing

/// Every document decoder with nested, cyclic, very long and very large input. A stack overflow or a trap ends the test
/// process, which is a failure.
@Suite("Hostile documents", .timeLimit(.minutes(20)))
struct HostileDocumentTests {
    /// A tree with the same depth as its document.
    private struct Tree: Decodable, Sendable {
        var depth = 0

        enum Key: String, CodingKey { case a }

        init(from decoder: any Decoder) throws {
            if var list = try? decoder.unkeyedContainer() {
                while !list.isAtEnd { depth = max(depth, try list.decode(Tree.self).depth + 1) }
            } else if let object = try? decoder.container(keyedBy: Key.self) {
                if object.contains(.a) { depth = try object.decode(Tree.self, forKey: .a).depth + 1 }
            }
        }
    }

    private static func exchange(_ body: [UInt8]) async throws -> HTTPExchange {
        let response = OriginResponse(200, body: .bytes(body))
        return try await TestOrigin.withOrigin(handler: .fixed(response)) { origin in
            try await HTTPSession.own().get(origin.url())
        }
    }

    private static let decoders: [(String, @Sendable (HTTPExchange) throws -> Void)] = [
        ("tree of JSON", { _ = "\(try $0.decode(using: .json))" }),
        ("tree of JSON without nulls", { _ = "\(try $0.decode(using: .json(removingNulls: true)))" }),
        ("JSON", { _ = try $0.decode(using: .json(Tree.self)) }),
        ("JSON as a tree", { _ = try $0.decode(using: .json(JSONValue.self)) }),
        ("JSON of the exchange", { _ = try $0.decode(Tree.self) }),
        ("property list", { _ = try $0.decode(using: .propertyList(Tree.self)) }),
        ("property list of numbers", { _ = try $0.decode(using: .propertyList([Int].self)) }),
        ("property list of fractions", { _ = try $0.decode(using: .propertyList([Double].self)) }),
        ("property list of bytes", { _ = try $0.decode(using: .propertyList([Data].self)) }),
        ("property list of dates", { _ = try $0.decode(using: .propertyList([Date].self)) }),
        ("property list of texts", { _ = try $0.decode(using: .propertyList([String: String].self)) }),
        ("text", { _ = try $0.decode(using: .strictText) }),
        ("either", { _ = try $0.decode(using: .first(of: .json(Tree.self), .propertyList(Tree.self))) }),
        ("nothing or a list", { _ = try $0.decode(using: .nilIfEmpty(.propertyList(Tree.self))) }),
    ]

    private static func repeated(_ text: String, _ count: Int) -> String {
        String(repeating: text, count: count)
    }

    /// Returns a binary property list of objects; the first one is the root.
    private static func binary(_ objects: [[UInt8]], top: Int = 0, offsets: [Int]? = nil) -> [UInt8] {
        func number(_ value: Int, _ size: Int) -> [UInt8] {
            (0..<size).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }
        var bytes = Array("bplist00".utf8)
        var places: [Int] = []
        for object in objects {
            places.append(bytes.count)
            bytes += object
        }
        let table = bytes.count
        for place in offsets ?? places { bytes += number(place, 4) }
        bytes += [0, 0, 0, 0, 0, 0, 4, 2] + number(objects.count, 8) + number(top, 8) + number(table, 8)
        return bytes
    }

    /// Returns an object reference of two bytes.
    private static func reference(_ object: Int) -> [UInt8] { [UInt8(object >> 8), UInt8(object & 0xFF)] }

    private static let key: [UInt8] = [0x51, UInt8(ascii: "a")]

    /// Returns a list header with an eight-byte count.
    private static func counted(_ marker: UInt8, _ count: UInt64) -> [UInt8] {
        [marker, 0x13] + (0..<8).reversed().map { UInt8(truncatingIfNeeded: count >> (8 * UInt64($0))) }
    }

    /// Returns an array of references to one text or data of so many bytes or UTF-16 code units.
    private static func shared(_ marker: UInt8, _ count: Int, in referenceCount: Int) -> [UInt8] {
        let references = (0..<referenceCount).flatMap { _ in reference(1) }
        let bytes = [UInt8](repeating: 0x61, count: marker == 0x6F ? 2 * count : count)
        return binary([
            counted(0xAF, UInt64(referenceCount)) + references, counted(marker, UInt64(count)) + bytes,
        ])
    }

    private static let depth = 100_000

    private static var documents: [(String, [UInt8])] {
        let (open, close) = (repeated("<array>", depth), repeated("</array>", depth))
        var documents: [(String, [UInt8])] = [
            ("JSON arrays", Array((repeated("[", depth) + repeated("]", depth)).utf8)),
            ("JSON arrays that stay open", Array(repeated("[", depth).utf8)),
            ("JSON objects", Array((repeated("{\"a\":", depth) + "1" + repeated("}", depth)).utf8)),
            ("a great JSON number", Array("[\(repeated("9", depth)),1e\(repeated("9", depth))]".utf8)),
            ("a great exponent", Array("[1e999999999999,-1e-999999999999]".utf8)),
            ("XML arrays", Array("<plist>\(open)\(close)</plist>".utf8)),
            ("XML arrays without a plist", Array("\(open)\(close)".utf8)),
            ("XML arrays that stay open", Array(open.utf8)),
            ("XML dictionaries", Array(repeated("<dict><key>a</key>", depth).utf8)),
            ("XML plists", Array(repeated("<plist>", depth).utf8)),
            ("arrays behind comments", Array(repeated("<array><!--</array>-->", depth).utf8)),
            ("arrays behind empty comments", Array(repeated("<array><!--></array>-->", depth).utf8)),
            ("arrays behind instructions", Array(repeated("<array><?</array>?>", depth).utf8)),
            ("arrays behind empty instructions", Array(repeated("<array><?>", depth).utf8)),
            (
                "arrays behind CDATA",
                Array(repeated("<array><string><![CDATA[</array>]]></string>", depth).utf8)
            ),
            ("arrays with attributes", Array(repeated("<array a='/' b='</array'>", depth).utf8)),
            ("arrays by a longer name", Array(repeated("<arrays>", depth).utf8)),
            (
                "ends before the beginning",
                Array("<?></array></plist>\(repeated("</array>", depth))?>\(open)".utf8)
            ),
            (
                "arrays behind a type",
                Array("<?xml version=\"1.0\"?><!DOCTYPE plist PUBLIC \"x\" \"</array>\">\(open)".utf8)
            ),
            ("XML arrays behind a mark", [0xEF, 0xBB, 0xBF] + Array(open.utf8)),
            (
                "XML arrays in UTF-16",
                [0xFF, 0xFE] + open.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
            ),
            ("XML arrays in UTF-32", [0, 0, 0xFE, 0xFF] + open.utf8.flatMap { [0, 0, 0, $0] }),
            ("OpenStep arrays", Array((repeated("(", depth) + repeated(")", depth)).utf8)),
            ("OpenStep dictionaries", Array(repeated("{a=", depth).utf8)),
            ("OpenStep data of other letters", Array("(<\u{100}>)".utf8)),
            ("half a surrogate pair in OpenStep", Array("(\"\\Ud800\")".utf8)),
            ("an array that contains itself", binary([[0xA1] + reference(0)])),
            ("a set that contains itself", binary([[0xC1] + reference(0)])),
            ("a dictionary that contains itself", binary([[0xD1] + reference(1) + reference(0), key])),
            ("a dictionary that is its own key", binary([[0xD1] + reference(0) + reference(1), key])),
            ("two arrays that contain each other", binary([[0xA1] + reference(1), [0xA1] + reference(0)])),
            (
                "a deep binary list",
                binary((1...60_000).map { [0xA1] + reference($0) } + [[0xA0]])
            ),
            (
                "two to the hundredth",
                binary((1...100).map { [0xA2] + reference($0) + reference($0) } + [[0xA0]])
            ),
            (
                "two to the fortieth as one array",
                binary((1...40).map { [0xA2] + reference($0) + reference($0) } + [[0xA0]])
            ),
            ("shared data", shared(0x4F, 1 << 16, in: 2000)),
            ("a shared text", shared(0x5F, 1 << 16, in: 2000)),
            ("a shared text in UTF-16", shared(0x6F, 1 << 15, in: 2000)),
            ("a reference to nothing", binary([[0xA1] + reference(500)])),
            ("a top object that is none", binary([[0xA0]], top: 9)),
            ("an offset outside", binary([[0xA1] + reference(1), [0xA0]], offsets: [8, 1 << 30])),
            ("an object amid the magic", binary([[0xA0]], offsets: [0])),
        ]
        for marker: UInt8 in [0x4F, 0x5F, 0x6F, 0xAF, 0xCF, 0xDF] {
            for count: UInt64 in [1 << 31, 1 << 62, 1 << 63, (1 << 63) + 1, .max] {
                let object = counted(marker, count)
                documents.append(("a count of \(count) at \(marker)", binary([object])))
                documents.append(("the same in a list", binary([[0xA1] + reference(1), object])))
            }
        }
        for marker: UInt8 in [0x14, 0x1E, 0x1F, 0x20, 0x2F, 0x33, 0x70, 0x80, 0xF0] {
            documents.append(("an object of the kind \(marker)", binary([[0xA1] + reference(1), [marker]])))
        }
        let nines = repeated("9", depth)
        for text in [nines, "-\(nines)", "0x\(repeated("F", depth))", "1e\(nines)", "", "+", "-", "nan"] {
            for kind in ["integer", "real", "date", "data", "string"] {
                documents.append(
                    (
                        "\(text.count) characters of an XML \(kind)",
                        Array("<array><\(kind)>\(text)</\(kind)></array>".utf8)
                    ))
            }
        }
        return documents
    }

    @Test("No document makes a decoder trap or overflow the stack")
    func all() async throws {
        for (_, document) in Self.documents {
            let exchange = try await Self.exchange(document)
            for (_, decoder) in Self.decoders {
                // Some decoders return a value and others throw. The test only requires that the call returns.
                _ = Result { try decoder(exchange) }
            }
        }
    }

    @Test("The error of a rejected property list contains the reason")
    func reasons() async throws {
        let documents = Dictionary(Self.documents, uniquingKeysWith: { first, _ in first })
        let expected: [(String, PropertyListError.Reason)] = [
            ("XML arrays", .tooDeep), ("XML dictionaries", .tooDeep), ("arrays behind comments", .tooDeep),
            ("arrays behind empty instructions", .tooDeep), ("arrays behind CDATA", .tooDeep),
            ("ends before the beginning", .tooDeep), ("XML arrays in UTF-16", .tooDeep),
            ("an array that contains itself", .cycle),
            ("a dictionary that contains itself", .cycle), ("two arrays that contain each other", .cycle),
            ("a deep binary list", .tooDeep), ("two to the fortieth as one array", .tooManyObjects),
            ("shared data", .tooLarge), ("a shared text", .tooLarge), ("a shared text in UTF-16", .tooLarge),
            ("a reference to nothing", .malformed), ("an offset outside", .malformed),
            ("a count of \(UInt64.max) at 175", .malformed),
        ]
        for (name, reason) in expected {
            let exchange = try await Self.exchange(try #require(documents[name]))
            let error = #expect(throws: HTTPError.self) {
                try exchange.decode(using: .propertyList(Tree.self))
            }
            #expect((error?.underlying as? PropertyListError)?.reason == reason, "\(name)")
        }
    }

    @Test("A property list at the depth limit, or with shared objects, is decoded")
    func allowed() async throws {
        let xml =
            "<plist version=\"1.0\">\(Self.repeated("<array>", 511))\(Self.repeated("</array>", 511))</plist>"
        let decoded = try await Self.exchange(Array(xml.utf8)).decode(using: .propertyList(Tree.self))
        #expect(decoded.depth == 510)
        let chain = Self.binary((1...510).map { [0xA1] + Self.reference($0) } + [[0xA0]])
        #expect(try await Self.exchange(chain).decode(using: .propertyList(Tree.self)).depth == 510)
        let shared = Self.binary([[0xA3] + [1, 1, 1].flatMap(Self.reference), Self.key])
        #expect(
            try await Self.exchange(shared).decode(using: .propertyList([String].self)) == ["a", "a", "a"])
        let texts = Self.shared(0x5F, 100, in: 10_000)
        #expect(try await Self.exchange(texts).decode(using: .propertyList([String].self)).count == 10_000)
        let utf16 = "<array><string>é</string></array>".utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
        let text = try await Self.exchange([0xFE, 0xFF] + utf16).decode(using: .propertyList([String].self))
        #expect(text == ["é"])
        let numbers = Array(Self.repeated("<integer>7</integer>", 1000).utf8)
        let wide = Array("<array>".utf8) + numbers + Array("</array>".utf8)
        #expect(try await Self.exchange(wide).decode(using: .propertyList([Int].self)).count == 1000)
    }
}
