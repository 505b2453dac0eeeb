import MartletTesting
import MartletTestSupport
import MartletXML
import Testing

@Suite("Limits of XML documents")
struct LimitTests {
    private static func repeated(_ text: String, _ count: Int) -> String {
        String(repeating: text, count: count)
    }

    @Test("Elements beyond the maximum depth are rejected at the first excess one")
    func depth() {
        let limits = XMLLimits(depth: 3)
        #expect(Reading("<a><a><a/></a></a>", limits: limits).error == nil)
        let error = Reading("<a><a><a><a/></a></a></a>", limits: limits).error
        #expect(error?.code == .limitExceeded)
        #expect(error?.position.byteOffset == 9)
        #expect(Reading(Self.repeated("<a>", 100_000)).error?.code == .limitExceeded)
    }

    @Test("Too many attributes and names or values that are too long are rejected")
    func sizes() {
        let limits = XMLLimits(attributeCount: 2, nameByteCount: 4, valueByteCount: 8)
        #expect(Reading("<abcd a='12345678' xmlns='abcd'/>", limits: limits).error == nil)
        for document in [
            "<a b='' c='' d=''/>", "<abcde/>", "<a abcde=''/>", "<a b='123456789'/>", "<!--123456789--><a/>",
            "<?p 123456789?><a/>", "<a>&abcde;</a>", "<?pqrst?><a/>", "<!DOCTYPE a SYSTEM 'x'><a/>",
            "<a xmlns='abcde'/>",
        ] {
            #expect(Reading(document, limits: limits).error?.code == .limitExceeded, "\(document)")
        }
    }

    @Test("A document that is too long is rejected at its limit")
    func bytes() {
        let limits = XMLLimits(byteCount: 10)
        #expect(Reading("<a>123</a>", limits: limits).error == nil)
        let error = Reading("<a>1234</a>", limits: limits).error
        #expect(error?.code == .limitExceeded)
        #expect(error?.position.byteOffset == 10)
    }

    @Test(
        "A tag, a comment or a document type without an end is rejected at its limit",
        arguments: [
            "<a b='", "<a>&", "<a><!--", "<a><?p ", "<a></a", "<!DOCTYPE a [<!--", "<!DOCTYPE a SYSTEM '",
        ]
    )
    func endless(_ start: String) {
        let limits = XMLLimits(valueByteCount: 1024)
        let bytes = Array(start.utf8) + [UInt8](repeating: 0x78, count: 1 << 20)
        let whole = Reading(bytes, limits: limits)
        #expect(whole.error?.code == .limitExceeded, "\(String(describing: whole.error))")
        for size in [100, 4097] { #expect(Reading(bytes, size: size, limits: limits) == whole) }
    }

    @Test("Names that never repeat are rejected before they exhaust memory")
    func vocabulary() {
        let limits = XMLLimits(vocabularyByteCount: 10_000)
        let same = (0..<1000).map { _ in "<b c='1'/>" }.joined()
        #expect(Reading("<a>\(same)</a>", limits: limits).error == nil)
        for unit in ["<b%/>", "<b c%=''/>", "<b xmlns:p%='u'/>", "<b xmlns='u%'/>"] {
            let body = (0..<1000).map { unit.replacing("%", with: "\($0)") }.joined()
            #expect(Reading("<a>\(body)</a>", limits: limits).error?.code == .limitExceeded, "\(unit)")
        }
    }

    @Test("Limits below one are treated as one, and a small document is still read")
    func unsound() {
        let limits = XMLLimits(
            depth: 0, attributeCount: -1, nameByteCount: 0, valueByteCount: .min, nodeCount: 0,
            vocabularyByteCount: 200)
        #expect(
            Reading("<a b='c'>d</a>", limits: XMLLimits(vocabularyByteCount: 0)).error?.code == .limitExceeded
        )
        #expect(Reading("<a b='c'>d</a>", limits: limits).error == nil)
    }

    @Test("Entity expansion is rejected: no entity is declared or fetched")
    func laughs() {
        let bomb = """
            <!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;">]>
            <lolz>&lol2;</lolz>
            """
        let reading = Reading(bomb)
        #expect(reading.events.isEmpty)
        #expect(reading.error?.code == .doctypeRejected)
        #expect(Reading("<!DOCTYPE a><a/>", doctype: .reject).error?.code == .doctypeRejected)
    }

    @Test("A tree stays within its node limit, and its depth is safe to traverse")
    func trees() throws {
        #expect(throws: XMLError.self) {
            try XMLTree(text: "<a><b/><b/><b/></a>", limits: XMLLimits(nodeCount: 3))
        }
        _ = try XMLTree(text: "<a><b/><b/></a>", limits: XMLLimits(nodeCount: 3))
        let deep = Self.repeated("<a>", XMLTree.depthLimit) + Self.repeated("</a>", XMLTree.depthLimit)
        let tree = try XMLTree(text: deep, limits: XMLLimits(depth: .max))
        #expect(try tree.serialized().utf8.count > (XMLTree.depthLimit - 1) * 7)
        #expect(tree.root.text == "")
        #expect(try XMLTree(text: tree.serialized(), limits: XMLLimits(depth: .max)).root == tree.root)
        #expect(throws: XMLError.self) { try XMLTree(text: "<a>\(deep)</a>", limits: XMLLimits(depth: .max)) }
    }

    @Test(
        "A mebibyte of any content is read in linear time",
        arguments: [
            "<a/>", "<a>", "&amp;", "]", "\r\n", "<!---->", "x", "<a b='1' c='2'/>", "<![CDATA[]]>", "'",
            "<b xmlns:p='u'/>",
        ])
    func linear(_ unit: String) async {
        let growth = await ComplexityProbe.measure((1 << 17, 1 << 20)) { byteCount in
            let body = Self.repeated(unit, byteCount / unit.utf8.count)
            let bytes = Array("<r>\(body)</r>".utf8)
            return { _ = Reading(bytes, limits: XMLLimits(depth: .max)) }
        }
        #expect(growth.isLinear, "\(growth)")
    }

    @Test("A namespace is as long as a name at most, and a longer one is not copied for each attribute of its tag")
    func longNamespaces() async {
        #expect(Reading("<a xmlns='\(Self.repeated("u", 1024))'><b/></a>").error == nil)
        #expect(Reading("<a xmlns='\(Self.repeated("u", 1025))'/>").error?.code == .limitExceeded)
        let growth = await ComplexityProbe.measure((1 << 12, 1 << 16)) { count in
            let attributes = (0..<count / 16).map { " p:a\($0)=''" }.joined()
            let bytes = Array("<a xmlns:p='\(Self.repeated("u", 4 * count))'\(attributes)/>".utf8)
            return { #expect(Reading(bytes).error?.code == .limitExceeded) }
        }
        #expect(growth.isLinear, "\(growth)")
    }

    @Test("Thousands of attributes, prefixes and pieces take linear time", arguments: [.max, 7])
    func wideElements(_ pieceByteCount: Int) async {
        let limits = XMLLimits(attributeCount: 100_000)
        let growth = await ComplexityProbe.measure((2500, 20_000)) { count in
            let attributes = (0..<count).map { " xmlns:p\($0)='u\($0)' p\($0):a='1'" }.joined()
            let bytes = Array("<a\(attributes)/>".utf8)
            return { #expect(Reading(bytes, size: pieceByteCount, limits: limits).error == nil) }
        }
        #expect(growth.isLinear, "\(growth)")
    }
}
