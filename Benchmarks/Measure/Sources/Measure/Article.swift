public import FoundationEssentials

/// The JSON of the benchmark server: about a kilobyte of texts, numbers and a list.
public struct Article: Decodable, Sendable {
    /// A comment on the article.
    public struct Comment: Decodable, Sendable {
        /// The unique number of the comment.
        public var id: Int
        /// The author of the comment.
        public var author: String
        /// The text of the comment.
        public var text: String
    }

    /// The unique number of the article.
    public var id: Int
    /// The headline of the article.
    public var title: String
    /// The text of the article.
    public var text: String
    /// The keywords of the article.
    public var tags: [String]
    /// The rating of the article.
    public var rating: Double
    /// Whether the article is visible to all readers.
    public var isPublic: Bool
    /// The comments on the article.
    public var comments: [Comment]

    /// Decodes an article in the same way for all contenders in Swift.
    public init(json: Data) throws {
        self = try JSONDecoder().decode(Article.self, from: json)
    }
}
