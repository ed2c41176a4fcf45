package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	authentication "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Token is a token of a ServiceAccount. Treat it as a password.
type Token struct {
	Text string
	End  time.Time
}

// CreateToken requests a token of a ServiceAccount. Without audiences, the token is for the
// API. The error is store.ErrNotFound if there is no such account.
func (c *Client) CreateToken(ctx context.Context, namespace, account string, audiences []string, life time.Duration) (Token, error) {
	seconds := int64(life / time.Second)
	body, err := json.Marshal(authentication.TokenRequest{Spec: authentication.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: &seconds}})
	if err != nil {
		return Token{}, err
	}
	path := fmt.Sprintf("%s/api/v1/namespaces/%s/serviceaccounts/%s/token", c.base, url.PathEscape(namespace), url.PathEscape(account))
	text, err := c.call(ctx, request{method: http.MethodPost, url: path, body: body, contentType: jsonType}, maxErrorAnswer)
	if err != nil {
		return Token{}, err
	}
	var answer authentication.TokenRequest
	if err := json.Unmarshal(text, &answer); err != nil {
		return Token{}, fmt.Errorf("decode the server's answer: %w", err)
	}
	if answer.Status.Token == "" {
		return Token{}, fmt.Errorf("the answer to POST %s is not one of a pilot-api server: it has no token", path)
	}
	return Token{answer.Status.Token, answer.Status.ExpirationTimestamp.Time}, nil
}

// RevokeToken ends a token of a ServiceAccount before its time, by its claim jti. The error is
// store.ErrNotFound if there is no such account, or if no token can have the id.
func (c *Client) RevokeToken(ctx context.Context, namespace, account, id string) error {
	path := fmt.Sprintf("%s/api/v1/namespaces/%s/serviceaccounts/%s/token/%s", c.base, url.PathEscape(namespace), url.PathEscape(account), url.PathEscape(id))
	var answer metav1.Status
	return c.exchange(ctx, request{method: http.MethodDelete, url: path}, &answer, func() error {
		return member("status Success", answer.Status == metav1.StatusSuccess)
	})
}

// User is a user as a server knows it.
type User struct {
	Name   string
	Groups []string
}

// WhoAmI returns the user as which the server identifies the client.
func (c *Client) WhoAmI(ctx context.Context) (User, error) {
	path := c.base + "/apis/authentication.k8s.io/v1/selfsubjectreviews"
	text, err := c.call(ctx, request{method: http.MethodPost, url: path, body: []byte("{}"), contentType: jsonType}, maxErrorAnswer)
	if err != nil {
		return User{}, err
	}
	var answer struct {
		Status struct {
			UserInfo *authentication.UserInfo `json:"userInfo"`
		} `json:"status"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return User{}, fmt.Errorf("decode the server's answer: %w", err)
	}
	user := answer.Status.UserInfo
	if user == nil {
		return User{}, fmt.Errorf("the answer to POST %s is not one of a pilot-api server: it has no userInfo", path)
	}
	return User{user.Username, user.Groups}, nil
}
