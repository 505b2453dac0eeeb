public import FoundationEssentials

/// What the JSON of the benchmarks' server says: about a kilobyte of texts, numbers and a list.
public struct Article: Decodable, Sendable {
    /// Somebody who wrote about it.
    public struct Comment: Decodable, Sendable {
        /// A number of its own.
        public var id: Int
        /// Who wrote it.
        public var author: String
        /// What it says.
        public var text: String
    }

    /// A number of its own.
    public var id: Int
    /// Its headline.
    public var title: String
    /// Its text.
    public var text: String
    /// Words to find it by.
    public var tags: [String]
    /// How good it is said to be.
    public var rating: Double
    /// Whether everybody may see it.
    public var isPublic: Bool
    /// What was written about it.
    public var comments: [Comment]

    /// Decodes an article as all contenders in Swift do.
    public init(json: Data) throws {
        self = try JSONDecoder().decode(Article.self, from: json)
    }
}
