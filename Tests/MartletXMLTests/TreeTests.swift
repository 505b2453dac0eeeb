import MartletXML
import Testing

@Suite("XML trees")
struct TreeTests {
    private static let feed = """
        <?xml version="1.0" encoding="UTF-8"?>
        <?style sheet?>
        <rss version="2.0" xmlns:media="urn:media">
          <channel>
            <title>News &amp; more</title>
            <item id="1"><title>One</title><media:thumb url="a.png"/></item>
            <item id="2"><title>Two <b>bold</b><!-- aside --> words</title></item>
          </channel>
        </rss>
        """

    @Test("A tree is read by paths, attributes and text")
    func lookUp() throws {
        let tree = try XMLTree(text: Self.feed)
        #expect(tree.root.name.local == "rss")
        #expect(tree.root["version"] == "2.0")
        #expect(tree.root.first("channel/title")?.text == "News & more")
        #expect(tree.root.all("channel/item").map { $0["id"] } == ["1", "2"])
        #expect(tree.root.all("channel/item/title").map(\.text) == ["One", "Two bold words"])
        #expect(tree.root.all("channel/*").map(\.name.local) == ["title", "item", "item"])
        #expect(tree.root.first("channel/item/thumb", in: "urn:media") == nil, "channel is in no namespace")
        #expect(tree.root.first("*/*")?.first("thumb") == nil)
        #expect(tree.root.all("channel/item")[0].first("thumb", in: "urn:media")?["url"] == "a.png")
        #expect(tree.root.first("nothing/item") == nil)
        #expect(tree.root.first("")?.name.local == "rss")
        #expect(tree.prologue == [.instruction(target: "style", data: "sheet")])
        #expect(tree.root.elements.count == 1)
    }

    @Test("A tree that is written and parsed again is equal")
    func roundTrip() throws {
        for text in [Self.feed, "<a/>", "<!DOCTYPE a PUBLIC 'p' \"it's\"><!--c--><a>\r&#13;</a><!--d-->"] {
            let tree = try XMLTree(text: text)
            let written = try tree.serialized()
            #expect(try XMLTree(text: written) == tree)
            #expect(try XMLTree(text: written).serialized() == written)
        }
    }

    @Test("Every well-formed document of the table is written and parsed again")
    func tableRoundTrip() throws {
        for row in ConformanceTable.all where row.code == nil {
            let tree = try XMLTree(text: row.document)
            let again = try XMLTree(text: try tree.serialized())
            #expect(again.root == tree.root, "\(row.document)")
            #expect(again.prologue == tree.prologue)
            #expect(again.epilogue == tree.epilogue)
        }
    }

    @Test("Special characters are escaped where required")
    func escaping() throws {
        var root = XMLTree.Element("a", text: "<&>\r\n\"'")
        root.attributes = [XMLAttribute(XMLName("b"), "<&>\"'\n\t\r")]
        let tree = XMLTree(root: root, declaration: nil)
        #expect(
            try tree.serialized()
                == "<a b=\"&lt;&amp;&gt;&quot;'&#10;&#9;&#13;\">&lt;&amp;&gt;&#13;\n\"'</a>\n")
        #expect(try XMLTree(text: tree.serialized()).root == root)
    }

    @Test("Missing namespace declarations are added")
    func declarations() throws {
        let inner = XMLTree.Element(
            XMLName("b", namespace: "urn:b", prefix: "p"),
            attributes: [XMLAttribute(XMLName("c", namespace: "urn:c", prefix: "q"), "1")],
            children: [.element(XMLTree.Element(XMLName("d", namespace: "urn:b", prefix: "p")))])
        let root = XMLTree.Element(
            XMLName("a", namespace: "urn:a"),
            children: [.element(inner), .element(XMLTree.Element("e", text: "f"))])
        let text = try XMLTree(root: root, declaration: nil).serialized()
        #expect(
            text == "<a xmlns=\"urn:a\"><p:b xmlns:p=\"urn:b\" xmlns:q=\"urn:c\" q:c=\"1\"><p:d/></p:b>"
                + "<e xmlns=\"\">f</e></a>\n")
        #expect(try XMLTree(text: text).root.elements.map(\.name) == root.elements.map(\.name))
    }

    @Test("A tree that is not a valid document is not written")
    func impossible() {
        typealias Element = XMLTree.Element
        let nested = (0..<XMLTree.depthLimit).reduce(Element("a", text: "")) { inner, _ in
            Element(XMLName("a"), children: [.element(inner)])
        }
        let cases: [(Element, XMLWritingError.Code)] = [
            (Element("a b", text: ""), .invalidName), (Element("", text: ""), .invalidName),
            (Element("p:a", text: ""), .invalidName), (Element("a", text: "\0"), .invalidCharacter),
            (Element(XMLName("a"), children: [.comment("a--b")]), .invalidContent),
            (Element(XMLName("a"), children: [.comment("a-")]), .invalidContent),
            (Element(XMLName("a"), children: [.instruction(target: "b", data: "?>")]), .invalidContent),
            (Element(XMLName("a"), children: [.instruction(target: "XML", data: "")]), .invalidName),
            (Element(XMLName("a", prefix: "p")), .invalidNamespace),
            (Element(XMLName("a", namespace: "urn:a", prefix: "xmlns")), .invalidNamespace),
            (Element(XMLName("a"), namespaces: [XMLNamespace("", prefix: "p")]), .invalidNamespace),
            (
                Element(XMLName("a"), attributes: [XMLAttribute(XMLName("b", namespace: "urn:b"), "")]),
                .invalidNamespace
            ),
            (
                Element(
                    XMLName("a", namespace: "urn:a", prefix: "p"),
                    attributes: [XMLAttribute(XMLName("b", namespace: "urn:b", prefix: "p"), "")]),
                .invalidNamespace
            ),
            (
                Element(
                    XMLName("a"),
                    attributes: [XMLAttribute(XMLName("b"), "1"), XMLAttribute(XMLName("b"), "2")]),
                .duplicateAttribute
            ),
            (nested, .tooDeep),
        ]
        for (element, code) in cases {
            let error = #expect(throws: XMLWritingError.self) { try XMLTree(root: element).serialized() }
            #expect(error?.code == code, "\(String(describing: error))")
        }
    }
}
